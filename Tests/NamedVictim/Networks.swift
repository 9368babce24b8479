// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopURLConnection

import class RunLoopCore.RunLoop

final class Networks: Sendable {
  private let worker: ResidentThread
  private let client: HTTP.Client
  private let port = Server.start()
  private var loop: RunLoop { worker.runLoop }

  init(on worker: ResidentThread) {
    self.worker = worker
    var configuration = HTTP.Configuration()
    configuration.storesCookies = true
    client = HTTP.Client(configuration)
  }

  func run() {
    response()
    progress()
    redirect()
    challenge()
    cookies()
    sink()
    completion()
    completionByLoader()
    batch()
    connection()
    downloadProgress()
  }

  private func address(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  private func operation(_ path: String, _ output: HTTP.Output = .memory) -> HTTP.Operation {
    client.operation(HTTP.Request(address(path)), output: output, on: loop)
  }

  private func response() {
    let done = Flag()
    let operation = operation("plain")
    operation.onResponse { _ in done.set() }
    operation.start()
    done.wait()
  }

  private func progress() {
    let done = Flag()
    let operation = operation("plain")
    operation.onProgress { if $0.received > 0 { done.set() } }
    operation.start()
    done.wait()
  }

  private func redirect() {
    let done = Flag()
    let operation = operation("moved")
    operation.onRedirect { next, _ in
      done.set()
      return next
    }
    operation.start()
    done.wait()
  }

  private func challenge() {
    let done = Flag()
    let operation = operation("secret")
    operation.onChallenge { _ in
      done.set()
      return nil
    }
    operation.start()
    done.wait()
  }

  private func cookies() {
    let done = Flag()
    let operation = operation("cookie")
    operation.onCookies { _ in done.set() }
    operation.start()
    done.wait()
  }

  private func sink() {
    let sink = Drain()
    operation("plain", .sink(sink)).start()
    sink.done.wait()
  }

  private func completion() {
    let done = Flag()
    let operation = operation("plain")
    operation.onCompletion { _ in done.set() }
    operation.start()
    done.wait()
  }

  private func completionByLoader() {
    let done = Flag()
    let operation = operation("plain")
    operation.onCompletion(on: .immediately) { _ in done.set() }
    operation.start()
    done.wait()
  }

  private func batch() {
    let done = Flag()
    HTTP.Operation.batch([operation("plain")], on: loop) { done.set() }
    done.wait()
  }

  private func connection() {
    let listener = ConnectionListener()
    let url = address("plain")
    try? worker.performAndWait {
      guard let url = URL(string: url) else { return }
      _ = NSURLConnection(request: URLRequest(url: url), delegate: listener)
    }
    listener.done.wait()
  }

  private func downloadProgress() {
    let done = Flag()
    guard let url = URL(string: address("plain")) else { return }
    let operation = AFURLConnectionOperation(request: URLRequest(url: url))
    operation.setDownloadProgressBlock { _, _, _ in done.set() }
    operation.start()
    done.wait()
  }
}

final class Drain: HTTP.Sink {
  let done = Flag()

  func begin(_ response: HTTP.Response, at offset: Int64) {}
  func write(_ bytes: UnsafeRawBufferPointer) {}
  func end() { done.set() }
}

final class ConnectionListener: NSURLConnectionDataDelegate, Sendable {
  let done = Flag()

  func connectionDidFinishLoading(_ connection: NSURLConnection) { done.set() }
}

/// Responds to each request on loopback, and closes the connection.
enum Server {
  static func start() -> UInt16 {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        guard bind(listener, $0, length) == 0, listen(listener, 16) == 0, getsockname(listener, $0, &length) == 0
        else { fatalError("no listener") }
      }
    }
    Foundation.Thread.detachNewThread { while true { answer(accept(listener, nil, nil)) } }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func answer(_ connection: Int32) {
    var bytes = [UInt8](repeating: 0, count: 4096)
    var request = ""
    while !request.contains("\r\n\r\n") {
      let count = read(connection, &bytes, bytes.count)
      guard count > 0 else { break }
      request += String(decoding: bytes[..<count], as: UTF8.self)
    }
    let head =
      switch request.split(separator: " ").dropFirst().first {
      case "/moved": "302 Found\r\nLocation: /plain"
      case "/secret": "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"victim\""
      case "/cookie": "200 OK\r\nSet-Cookie: name=value"
      default: "200 OK"
      }
    let text = "HTTP/1.1 \(head)\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
    _ = text.withCString { write(connection, $0, strlen($0)) }
    close(connection)
  }
}
