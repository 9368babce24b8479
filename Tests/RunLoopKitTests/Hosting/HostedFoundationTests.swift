// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import FoundationNetworking
import Glibc
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

/// Foundation's objects on the thread's run loop, served while this package's loop runs.
@Suite("Foundation's objects on a loop that serves Core Foundation", .timeLimit(.minutes(20)))
struct HostedFoundationTests {
  @Test("a process's end is reported to its handler, and a call-out can wait for it", .rule(.m32))
  func process() {
    let log = hosted { rig in
      rig.keepAlive()
      let first = Process()
      first.executableURL = URL(fileURLWithPath: "/bin/true")
      first.terminationHandler = { process in
        let status = process.terminationStatus
        rig.loop.perform {
          rig.write("terminated \(status)")
          rig.loop.stop()
        }
      }
      try first.run()
      rig.run()
      rig.loop.perform {
        do {
          let second = Process()
          second.executableURL = URL(fileURLWithPath: "/bin/sh")
          second.arguments = ["-c", "exit 3"]
          try second.run()
          second.waitUntilExit()
          rig.write("exit \(second.terminationStatus)")
        } catch {
          rig.write("\(error)")
        }
        rig.loop.stop()
      }
      rig.run()
    }
    #expect(log == "terminated 0 stopped exit 3 stopped")
  }

  @Test(
    "a Core Foundation call-out can wait for a process, and posts made meanwhile are served afterwards",
    .rule(.m32))
  func processInTheirs() {
    let log = hosted { rig in
      rig.keepAlive()
      foundationTimer(after: 0.001) { _ in
        do {
          let process = Process()
          process.executableURL = URL(fileURLWithPath: "/bin/true")
          try process.start()
          rig.loop.perform {
            rig.write("B")
            rig.loop.stop()
          }
          process.waitUntilExit()
          rig.write("exit \(process.terminationStatus)")
        } catch {
          rig.write("\(error)")
        }
      }
      rig.run()
    }
    #expect(log == "exit 0 B stopped")
  }

  @Test("a Core Foundation socket calls its client, and keeps a run alive until it is invalid", .rule(.m32))
  func socketSource() throws {
    let pair = try SocketPair()
    let log = hosted { rig in
      let client = SocketClient(rig)
      client.schedule(pair.one)
      rig.whenAsleep { _ in pair.write("hello") }
      rig.detach {
        waitUntil { rig.text.contains("hello") && rig.loop.isWaiting }
        pair.endWriting()
      }
      rig.loop.run()
      rig.write("returned")
    }
    #expect(log == "hello end returned")
  }

  @Test("the delegate of a URL session that uses the loop receives a response", .rule(.m32))
  func urlSession() {
    let log = hosted { rig in
      let server = try LoopbackServer { _ in
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
      }
      rig.keepAlive()
      let delegate = SessionDelegate(rig)
      let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
      guard let url = URL(string: "http://127.0.0.1:\(server.port)/") else { return }
      session.dataTask(with: url).resume()
      rig.run()
      session.invalidateAndCancel()
    }
    #expect(log == "200 hello done stopped")
  }
}

private final class SocketPair: Sendable {
  let one: Int32
  private let other: Int32

  init() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    (one, other) = (ends[0], ends[1])
  }

  deinit {
    close(one)
    close(other)
  }

  func write(_ text: String) { _ = Glibc.write(other, text, text.utf8.count) }

  func endWriting() { shutdown(other, Int32(SHUT_WR)) }
}

/// A Core Foundation socket that logs what it receives.
private final class SocketClient {
  private let rig: HostedRig

  init(_ rig: HostedRig) { self.rig = rig }

  func schedule(_ descriptor: Int32) {
    var context = CFSocketContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    let socket = CFSocketCreateWithNative(
      nil, descriptor, CFSocketCallBackType.dataCallBack.rawValue,
      { socket, _, _, data, info in
        guard let info, let data else { return }
        let received = Unmanaged<CFData>.fromOpaque(data).takeUnretainedValue()
        Unmanaged<SocketClient>.fromOpaque(info).takeUnretainedValue().receive(received, socket)
      }, &context)
    // The owner closes the descriptor.
    CFSocketSetSocketFlags(socket, CFSocketGetSocketFlags(socket) & ~CFOptionFlags(kCFSocketCloseOnInvalidate))
    CFRunLoopAddSource(rig.cf, CFSocketCreateRunLoopSource(nil, socket, 0), cfMode(.default))
  }

  private func receive(_ data: CFData, _ socket: CFSocket?) {
    let count = CFDataGetLength(data)
    guard count > 0 else {
      rig.write("end")
      return CFSocketInvalidate(socket)
    }
    rig.write(String(decoding: UnsafeBufferPointer(start: CFDataGetBytePtr(data), count: count), as: UTF8.self))
  }
}

private final class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  // Sendable: its only property is the rig, which is Sendable.
  private let rig: HostedRig

  init(_ rig: HostedRig) { self.rig = rig }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    rig.loop.perform { [rig] in rig.write("\(status)") }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let text = String(decoding: data, as: UTF8.self)
    rig.loop.perform { [rig] in rig.write(text) }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let end = error.map { "\($0)" } ?? "done"
    rig.loop.perform { [rig] in
      rig.write(end)
      rig.loop.stop()
    }
  }
}
