// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport

@testable import RunLoopSockets

/// A SOCKS 4, 4a and 5 proxy that responds to each request itself, with the requested destination.
final class SocksServer: Sendable {
  private let thread: ResidentThread
  private let listener: ListeningSocket
  private let connections = Box<[Socket]>([])
  /// The requested destinations, such as "5 name example.org:80".
  let asked = Box<[String]>([])
  /// The headers of the requests sent through the proxy.
  let heads = Box<[String]>([])

  /// - Parameters:
  ///   - password: The password that SOCKS 5 clients must send, or nil to require none.
  ///   - rejects: Whether every connection is rejected.
  init(password: String? = nil, rejects: Bool = false) throws {
    thread = try ResidentThread(name: "SocksServer")
    listener = try ListeningSocket(at: .loopback(port: 0))
    let (loop, connections, asked, heads) = (thread.runLoop, connections, asked, heads)
    listener.handler = { _, event in
      guard case .accepted(let socket) = event else { return }
      let talk = Box(Talk(password: password, rejects: rejects, heads: heads))
      socket.handler = { socket, event in
        guard case .received(let arrived) = event else { return }
        let bytes = arrived.withUnsafeBytes { Array($0) }
        let (answer, found) = talk.update { ($0.take(bytes), $0.takeFound()) }
        if let found { asked.update { $0.append(found) } }
        if !answer.isEmpty { _ = try? socket.write(answer) }
      }
      connections.update { $0.append(socket) }
      try? loop.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
  }

  var port: UInt16 { listener.address.port ?? 0 }

  func stop() {
    listener.invalidate()
    for socket in connections.value { socket.invalidate() }
    thread.stop()
  }

  deinit { stop() }

  /// The state of a connection.
  private struct Talk {
    private enum Phase { case greeting, credential, request, web }

    let password: String?
    let rejects: Bool
    let heads: Box<[String]>
    private var phase = Phase.greeting
    private var bytes: [UInt8] = []
    private var found: String?
    private var target = ""

    init(password: String?, rejects: Bool, heads: Box<[String]>) {
      (self.password, self.rejects, self.heads) = (password, rejects, heads)
    }

    mutating func takeFound() -> String? {
      defer { found = nil }
      return found
    }

    mutating func take(_ more: [UInt8]) -> [UInt8] {
      bytes += more
      var answer: [UInt8] = []
      while let next = step() { answer += next }
      return answer
    }

    /// Returns the reply to the bytes received so far, or nil if more are needed.
    private mutating func step() -> [UInt8]? {
      switch phase {
      case .greeting:
        if bytes.first == 4 { return old() }
        guard bytes.count >= 2, bytes.count >= 2 + Int(bytes[1]) else { return nil }
        bytes.removeFirst(2 + Int(bytes[1]))
        phase = password == nil ? .request : .credential
        return [5, password == nil ? 0 : 2]
      case .credential:
        guard bytes.count >= 2, bytes.count > 2 + Int(bytes[1]) else { return nil }
        let place = 2 + Int(bytes[1])
        guard bytes.count > place + Int(bytes[place]) else { return nil }
        let isRight = bytes[(place + 1)...].prefix(Int(bytes[place])).elementsEqual((password ?? "").utf8)
        bytes.removeFirst(place + 1 + Int(bytes[place]))
        phase = .request
        return [1, isRight ? 0 : 1]
      case .request: return new()
      case .web:
        let head = String(decoding: bytes, as: UTF8.self)
        guard head.hasSuffix("\r\n\r\n") else { return nil }
        heads.update { $0.append(head) }
        bytes = []
        return Array("HTTP/1.1 200 OK\r\nContent-Length: \(target.utf8.count)\r\n\r\n\(target)".utf8)
      }
    }

    private mutating func note(_ text: String) {
      target = text
      found = text
      phase = .web
    }

    private static func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
    private static func numbers(_ bytes: some Collection<UInt8>) -> String {
      bytes.map { "\($0)" }.joined(separator: ".")
    }

    private mutating func new() -> [UInt8]? {
      guard bytes.count >= 5 else { return nil }
      let isName = bytes[3] == 3
      let count = isName ? 1 + Int(bytes[4]) : bytes[3] == 4 ? 16 : 4
      guard bytes.count >= 4 + count + 2 else { return nil }
      let host = isName ? "name " + Self.text(bytes[5..<4 + count]) : "number " + Self.numbers(bytes[4..<4 + count])
      let port = Int(bytes[4 + count]) << 8 | Int(bytes[5 + count])
      bytes.removeFirst(6 + count)
      note("5 \(host):\(port)")
      return [5, rejects ? 5 : 0, 0, 1, 0, 0, 0, 0, 0, 0]
    }

    private mutating func old() -> [UInt8]? {
      guard bytes.count > 8, let end = bytes[8...].firstIndex(of: 0) else { return nil }
      let port = Int(bytes[2]) << 8 | Int(bytes[3])
      var host = "number " + Self.numbers(bytes[4..<8])
      var after = end + 1
      if bytes[4..<7].allSatisfy({ $0 == 0 }) {
        guard let last = bytes[after...].firstIndex(of: 0) else { return nil }
        host = "name " + Self.text(bytes[after..<last])
        after = last + 1
      }
      bytes.removeFirst(after)
      note("4 \(host):\(port)")
      return [0, rejects ? 0x5b : 0x5a, 0, 0, 0, 0, 0, 0]
    }
  }
}
