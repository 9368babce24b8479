// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Testing
import TestSupport

@Suite("Foundation's own timers and ports in our loops", .timeLimit(.minutes(20)))
struct FoundationItemTests {
  @Test("a Foundation timer fires in a run of our loop, and the run then finishes")
  func timer() async throws {
    let log = Log()
    try await valueOnThread {
      let (loop, thread) = (RunLoop.current, Thread.current)
      #expect(!loop.isServingCoreFoundation)
      let timer = Foundation.Timer(fire: Date(timeIntervalSinceNow: 0.01), interval: 0, repeats: false) { _ in
        log.write("\(Thread.current == thread) \(loop.currentMode == .default)")
      }
      #expect(loop.add(timer, forMode: .default))
      #expect(loop.isServingCoreFoundation)
      loop.run()
    }
    #expect(log.text == "true true")
  }

  @Test("a Foundation timer fires in its mode, next to one of ours")
  func modes() async throws {
    let log = Log()
    try await valueOnThread {
      let (loop, mode) = (RunLoop.current, RunLoop.Mode("mine"))
      let theirs = Foundation.Timer(fire: .distantPast, interval: 0, repeats: false) { _ in log.write("theirs") }
      loop.add(theirs, forMode: mode)
      loop.add(Timer(fire: .distantPast, interval: 0, repeats: false) { _ in log.write("ours") }, forMode: .default)
      loop.run()
      log.write("|")
      while loop.run(mode: mode, before: .distantFuture) {}
    }
    #expect(log.text == "ours | theirs")
  }

  @Test("a Foundation timer added by another thread fires on the loop's thread")
  func otherThread() async throws {
    let resident = try ResidentThread()
    let isThere = await withCheckedContinuation { continuation in
      let timer = Foundation.Timer(fire: .distantPast, interval: 0, repeats: false) { _ in
        continuation.resume(returning: Thread.current == resident.thread)
      }
      #expect(resident.runLoop.add(timer, forMode: .common))
    }
    #expect(isThere)
    resident.stop()
    try resident.join()
    let late = Foundation.Timer(fire: .distantPast, interval: 0, repeats: false) { _ in }
    #expect(!resident.runLoop.add(late, forMode: .default))
  }

  @Test("a socket port receives messages in a run of our loop", arguments: [RunLoop.Mode.default, .common])
  func socketPort(_ mode: RunLoop.Mode) async throws {
    let seen = try await valueOnThread {
      let port = try #require(SocketPort(tcpPort: 0))
      let receiver = Receiver()
      port.setDelegate(receiver)
      RunLoop.current.add(port, forMode: mode)
      defer { RunLoop.current.remove(port, forMode: mode) }
      try send("twelve bytes and more", to: port)
      while receiver.seen.isEmpty, RunLoop.current.run(mode: .default, before: .distantFuture) {}
      return receiver.seen
    }
    #expect(seen == ["twelve bytes and more in kCFRunLoopDefaultMode"])
  }

  @Test("a socket port that schedules itself receives until it is removed")
  func schedule() async throws {
    let seen = try await valueOnThread {
      let (loop, mode) = (RunLoop.current, RunLoop.Mode("mine"))
      let port = try #require(SocketPort(tcpPort: 0))
      let receiver = Receiver()
      port.setDelegate(receiver)
      port.schedule(in: loop, forMode: mode)
      try send("twelve bytes and more", to: port)
      while receiver.seen.isEmpty, loop.run(mode: mode, before: .distantFuture) {}
      port.remove(from: loop, forMode: mode)
      port.invalidate()
      #expect(!loop.run(mode: mode, before: .distantFuture))
      return receiver.seen
    }
    #expect(seen == ["twelve bytes and more in mine"])
  }

  /// Sends from a port on its own thread, because Foundation's socket ports send only from a loop.
  private func send(_ text: String, to port: SocketPort) throws {
    let number = port.address.withUnsafeBytes { $0.load(fromByteOffset: 2, as: UInt16.self).bigEndian }
    let sender = try #require(SocketPort(remoteWithTCPPort: number, host: "localhost"))
    let parts = NSMutableArray(array: [Data(text.utf8)])
    #expect(sender.send(before: Date(timeIntervalSinceNow: 600), components: parts, from: nil, reserved: 0))
  }
}

/// Records the messages of Foundation's ports with their modes.
private final class Receiver: Foundation.PortDelegate {
  private(set) var seen: [String] = []

  func handle(_ message: Foundation.PortMessage) {
    let text = (message.components ?? []).compactMap { ($0 as? Data).map { String(decoding: $0, as: UTF8.self) } }
    seen.append("\(text.joined()) in \(RunLoop.current.currentMode?.rawValue ?? "no mode")")
  }
}
