// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents
import RunLoopThreads
import TestSupport

@testable import RunLoopHTTP
@testable import RunLoopSockets

/// A server that answers whatever a test wants, byte by byte.
final class LyingServer: Sendable {
  /// A request, and the connection that it came on.
  struct Exchange: Sendable {
    /// The first line and the fields, as they were sent.
    let head: String
    let body: [UInt8]
    /// How many requests came on this connection before.
    let number: Int
    let socket: Socket
    fileprivate let ended: Counter

    /// "GET /path".
    var line: String { String(head.prefix { $0 != "\r\n" }.dropLast(9)) }
    var path: String { String(line.split(separator: " ").last ?? "") }

    func field(_ name: String) -> String? {
      for line in head.split(separator: "\r\n").dropFirst() {
        let parts = line.split(separator: ":", maxSplits: 1)
        if parts.count == 2, parts[0].lowercased() == name.lowercased() { return trimmed(parts[1]) }
      }
      return nil
    }

    func send(_ text: String) { _ = try? socket.write(text) }
    func send(_ bytes: [UInt8]) { _ = try? socket.write(bytes) }
    /// An answer with a length.
    func answer(_ body: String, status: String = "200 OK", _ fields: String...) {
      answer(Array(body.utf8), status: status, fields)
    }
    func answer(_ body: [UInt8], status: String = "200 OK", _ fields: [String] = []) {
      let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + fields
      send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
    }
    func end() { socket.shutDown(.write) }
    /// Ends the connection as somebody between would, who knows nothing of its encryption.
    func cut() {
      guard let number = socket.lock.withLock({ socket.descriptor?.number }) else { return }
      _ = shutdown(number, Int32(SHUT_WR))
    }
    /// Ends the connection as a process that was killed would.
    func reset() {
      guard let number = socket.lock.withLock({ socket.descriptor?.number }) else { return }
      var lingers = linger(l_onoff: 1, l_linger: 0)
      _ = setsockopt(number, SOL_SOCKET, SO_LINGER, &lingers, socklen_t(MemoryLayout<linger>.size))
      close()
    }
    func close() {
      // A socket that is invalidated reports nothing more.
      let isFirst = socket.isValid
      socket.invalidate()
      if isFirst { ended.add() }
    }
  }

  private let thread: ResidentThread
  private let listener: ListeningSocket
  private let connections = Box<[Socket]>([])
  /// The lines of all requests, such as "GET /path", in their order.
  let requests = Box<[String]>([])
  /// How many connections were made, and how many of them have ended.
  let accepted = Counter()
  let ended = Counter()

  private let scheme: String

  /// - Parameters:
  ///   - address: Where it listens.
  ///   - tls: What secures its connections; nil: they are plain.
  init(
    at address: SocketAddress = .loopback(port: 0), tls: TLSContext? = nil,
    _ respond: @escaping @Sendable (Exchange) -> Void
  ) throws {
    thread = try ResidentThread(name: "LyingServer")
    scheme = tls == nil ? "http" : "https"
    var options = ListeningSocket.Options()
    options.accepted.highWater = 1 << 30
    if let tls {
      listener = try ListeningSocket(at: address, tls: tls, options: options)
    } else {
      listener = try ListeningSocket(at: address, options: options)
    }
    let (loop, connections, requests) = (thread.runLoop, connections, requests)
    listener.handler = { [accepted, ended] _, event in
      guard case .accepted(let socket) = event else { return }
      accepted.add()
      let input = Box(Input())
      socket.handler = { socket, event in
        switch event {
        case .received(let bytes):
          let bytes = bytes.withUnsafeBytes { Array($0) }
          for request in input.update({ $0.take(bytes) }) {
            let exchange = Exchange(
              head: request.head, body: request.body, number: request.number, socket: socket, ended: ended)
            requests.update { $0.append(exchange.line) }
            respond(exchange)
          }
        case .ended:
          // The client has gone.
          socket.shutDown(.write)
        case .closed: ended.add()
        case .connected, .readable, .writable: break
        }
      }
      connections.update { $0.append(socket) }
      try? loop.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
  }

  func url(_ path: String = "/", host: String = "127.0.0.1") -> String {
    "\(scheme)://\(host):\(listener.address.port ?? 0)\(path)"
  }

  /// The descriptors of this process that are connected to the server, in their order.
  var clientDescriptors: [Int32] {
    (0..<Int32(4096)).filter { descriptor in
      var name = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isConnected = withUnsafeMutablePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
      }
      return isConnected && name.sin_family == AF_INET && UInt16(bigEndian: name.sin_port) == listener.address.port
    }
  }

  /// Whether every connection that was made was accepted and has ended.
  ///
  /// It is asked on the server's thread, where no connection is between its end and its count. What waits to be
  /// accepted has no descriptor yet and is not counted: without looking for it, all of none would have ended.
  var isSettled: Bool {
    let answer = try? thread.performAndWait { [listener, accepted, ended] in
      guard accepted.value == ended.value else { return false }
      return listener.withDescriptor { descriptor in
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 0) == 0
      } ?? true
    }
    return answer ?? false
  }

  func stop() {
    listener.invalidate()
    for socket in connections.value { socket.invalidate() }
    thread.stop()
  }

  deinit { stop() }

  /// The requests of a connection, as their bytes arrive.
  private struct Input {
    private var bytes: [UInt8] = []
    private var number = 0

    mutating func take(_ more: [UInt8]) -> [(head: String, body: [UInt8], number: Int)] {
      bytes += more
      var requests: [(head: String, body: [UInt8], number: Int)] = []
      while let end = Self.find([13, 10, 13, 10], in: bytes, from: 0) {
        let head = String(decoding: bytes[..<end], as: UTF8.self) + "\r\n\r\n"
        let fields = head.lowercased().split(separator: "\r\n")
        var body: [UInt8] = []
        var next = end + 4
        if let length = fields.first(where: { $0.hasPrefix("content-length: ") }).flatMap({ Int($0.dropFirst(16)) }) {
          guard bytes.count >= next + length else { break }
          body = Array(bytes[next..<next + length])
          next += length
        } else if fields.contains("transfer-encoding: chunked") {
          guard let (content, after) = Self.readChunks(bytes, from: next) else { break }
          (body, next) = (content, after)
        }
        requests.append((head, body, number))
        number += 1
        bytes.removeFirst(next)
      }
      return requests
    }

    private static func readChunks(_ bytes: [UInt8], from start: Int) -> ([UInt8], Int)? {
      var (body, position): ([UInt8], Int) = ([], start)
      while let end = find([13, 10], in: bytes, from: position) {
        guard let size = Int(String(decoding: bytes[position..<end], as: UTF8.self), radix: 16) else { return nil }
        let after = end + 2 + size + 2
        guard bytes.count >= after else { return nil }
        if size == 0 { return (body, after) }
        body += bytes[end + 2..<end + 2 + size]
        position = after
      }
      return nil
    }

    private static func find(_ pattern: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
      guard bytes.count >= start + pattern.count else { return nil }
      return (start...bytes.count - pattern.count).first { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
    }
  }
}

/// The end of a request, as a literal can have it: "200 body" or the code's name.
func end(_ client: HTTP.Client, _ request: HTTP.Request) async -> String {
  do {
    let (body, response) = try await client.data(for: request)
    return "\(response.status.code) \(body.text ?? "\(body.count) bytes")"
  } catch let error as HTTP.Error {
    return error.code.name
  } catch {
    return "\(error)"
  }
}

/// Makes a request again and again, as below.
func ends(_ client: HTTP.Client, _ request: HTTP.Request, times: Int) async -> [String] {
  await ends(client, [HTTP.Request](repeating: request, count: times))
}

/// Makes requests, each by the loader's thread when the one before has ended, and gives the ends.
///
/// A task that waits for one of few threads may do so for minutes, while a kept connection becomes too old to be used.
func ends(_ client: HTTP.Client, _ requests: [HTTP.Request]) async -> [String] {
  let found = Box<[String]>([])
  return await withCheckedContinuation { continuation in
    @Sendable func next() {
      let operation = client.operation(requests[found.value.count], on: .main)
      operation.onCompletion(on: .immediately) { outcome in
        let end =
          switch outcome {
          case .success((let body, let response)): "\(response.status.code) \(body.text ?? "\(body.count) bytes")"
          case .failure(let error): error.code.name
          }
        let count = found.update {
          $0.append(end)
          return $0.count
        }
        if count < requests.count { next() } else { continuation.resume(returning: found.value) }
      }
      operation.start()
    }
    next()
  }
}

/// Makes a client, and sees it end.
func withClient<Value>(
  _ change: (inout HTTP.Configuration) -> Void = { _ in }, _ body: (HTTP.Client) async throws -> Value
) async throws -> Value {
  var configuration = HTTP.Configuration()
  configuration.idleTimeout = nil
  change(&configuration)
  let client = HTTP.Client(configuration)
  do {
    let value = try await body(client)
    client.stop()
    _ = await client.finished()
    return value
  } catch {
    client.stop(.immediately)
    _ = await client.finished()
    throw error
  }
}

/// Bytes of which each is its index, modulo 251.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
  let block = (0..<251).map { UInt8(($0 + start) % 251) }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + block.count)
  while bytes.count < count { bytes += block }
  bytes.removeLast(bytes.count - count)
  return bytes
}

/// Waits until something is so, and leaves the pool's few threads to the tasks that make it so.
func eventually(_ condition: @escaping @Sendable () -> Bool) async {
  await elsewhere { waitUntil { condition() } }
}
