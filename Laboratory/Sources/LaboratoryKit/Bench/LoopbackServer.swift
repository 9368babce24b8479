// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopHTTP
import RunLoopSockets
import RunLoopThreads

/// A web server on the loopback interface, with its own thread and loop, for experiments that need one.
///
/// It responds to `/` with a cookie and a short body. For `/half` it sends only half of the body, unless the request
/// is for the rest. For `/parts` it sends the second half on demand. For `/silent` it sends nothing.
final class LoopbackServer: Sendable {
  static let body = "0123456789"

  private let thread: ResidentThread
  private let listener: ListeningSocket
  private let connections = Found<[Socket]>([])
  /// The connection of the last request for `/parts`.
  private let waiting = Found<Socket?>(nil)
  /// The requested paths, with the range if there is one.
  let requests = Record()
  /// The number of connections that the other side has ended.
  let ended = Tally()

  init(_ meeting: Meeting) throws {
    thread = try ResidentThread(name: "LoopbackServer")
    listener = try ListeningSocket(at: .loopback(port: 0))
    let (loop, connections, waiting) = (thread.runLoop, connections, waiting)
    let (requests, ended) = (requests, ended)
    listener.handler = { _, event in
      guard case .accepted(let socket) = event else { return }
      let input = Found("")
      socket.handler = { socket, event in
        switch event {
        case .received(let bytes):
          input.value += String(decoding: bytes.withUnsafeBytes { Array($0) }, as: UTF8.self)
          while let end = input.value.firstRange(of: "\r\n\r\n") {
            let head = String(input.value[..<end.lowerBound])
            input.value = String(input.value[end.upperBound...])
            let path = String(head.split(separator: " ").dropFirst().first ?? "")
            // The client may receive the first half, and ask for the rest, before the write returns.
            if path == "/parts" { waiting.value = socket }
            Self.answer(path, head, socket, requests)
          }
          meeting.announce()
        case .ended:
          ended.add()
          socket.shutDown(.write)
          meeting.announce()
        case .closed, .connected, .readable, .writable: break
        }
      }
      connections.append(socket)
      try? loop.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
  }

  /// Sends the rest of the last response for `/parts`.
  func sendRest() {
    guard let socket = waiting.value else { return }
    Self.send(String(Self.body.dropFirst(Self.body.count / 2)), socket)
  }

  private static func answer(_ path: String, _ head: String, _ socket: Socket, _ requests: Record) {
    let range = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("range: bytes=") }
      .flatMap { Int($0.dropFirst("range: bytes=".count).dropLast()) }
    requests.write(range.map { "\(path) from \($0)" } ?? path)
    let tag = "ETag: \"1\"\r\n"
    switch (path, range) {
    case ("/half", let first?) where first < body.count:
      send(
        "HTTP/1.1 206 Partial Content\r\n\(tag)Content-Range: bytes \(first)-\(body.count - 1)/\(body.count)\r\n"
          + "Content-Length: \(body.count - first)\r\n\r\n\(body.dropFirst(first))", socket)
    case ("/half", _):
      send("HTTP/1.1 200 OK\r\n\(tag)Content-Length: \(body.count)\r\n\r\n\(body.prefix(body.count / 2))", socket)
    case ("/parts", _):
      send(
        "HTTP/1.1 200 OK\r\nSet-Cookie: lab=1\r\nContent-Length: \(body.count)\r\n\r\n\(body.prefix(body.count / 2))",
        socket)
    case ("/silent", _): break
    default:
      send("HTTP/1.1 200 OK\r\nSet-Cookie: lab=1\r\nContent-Length: \(body.count)\r\n\r\n\(body)", socket)
    }
  }

  private static func send(_ text: String, _ socket: Socket) { _ = try? socket.write(text) }

  func address(_ path: String) -> String { "http://127.0.0.1:\(listener.address.port ?? 0)\(path)" }

  func request(_ path: String) -> HTTP.Request { HTTP.Request(address(path)) }

  func stop() {
    listener.invalidate()
    for socket in connections.value { socket.invalidate() }
    waiting.value = nil
    thread.stop()
  }
}
