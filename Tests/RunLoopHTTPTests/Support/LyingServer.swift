// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopThreads
import TestSupport

@testable import RunLoopHTTP
@testable import RunLoopHTTPTesting

/// A server that sends any bytes a test wants.
final class LyingServer: Sendable {
  /// A request and its connection.
  struct Exchange: Sendable {
    let request: HTTPTestServer.Request

    /// The request line without the version: "GET /path".
    var line: String { request.line }
    var path: String { request.path }
    var body: [UInt8] { request.body }
    /// The headers as they were sent.
    var head: String { request.headers.map { "\($0.name): \($0.value)\r\n" }.joined() }
    /// The number of earlier requests on this connection.
    var number: Int { request.number }

    func field(_ name: String) -> String? { request.header(name) }
    func send(_ bytes: [UInt8]) { request.send(bytes) }
    func send(_ text: String) { send(Array(text.utf8)) }
    /// Sends a response with a Content-Length.
    func answer(_ body: String, status: String = "200 OK", _ fields: String...) {
      answer(Array(body.utf8), status: status, fields)
    }
    func answer(_ body: [UInt8], status: String = "200 OK", _ fields: [String] = []) {
      let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + fields
      send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
    }
    func end() { request.end(.halfClose) }
    func close() { request.end(.close) }
    func reset() { request.end(.reset) }
    /// Cuts the connection below TLS, as a middlebox could.
    func cut() { request.wire.perform { $0.socket.withDescriptor { _ = shutdown($0, Int32(SHUT_WR)) } } }
  }

  private let server: HTTPTestServer

  /// - Parameters:
  ///   - address: The address to listen on.
  ///   - tls: The configuration for TLS, or nil for plain connections.
  init(
    at address: SocketAddress = .loopback(port: 0), tls: TLSServerConfiguration? = nil,
    _ respond: @escaping @Sendable (Exchange) -> Void
  ) throws {
    var options = HTTPTestServer.Options()
    options.tls = tls
    options.http2 = tls?.applicationProtocols.contains("h2") == true
    server = try HTTPTestServer(at: address, options: options) { request in
      respond(Exchange(request: request))
      return nil
    }
  }

  func url(_ path: String = "/", host: String? = nil) -> String { server.url(path, host: host) }
  func stop() { server.stop() }

  /// The request lines of all requests in order, such as "GET /path".
  var requests: Box<[String]> { Box(server.requests.map(\.line)) }
  /// The number of connections that were accepted, and of those that have ended.
  var accepted: Box<Int> { Box(server.connectionCount) }
  var ended: Box<Int> { Box(server.endedConnectionCount) }

  /// The descriptors of this process that are connected to the server, in ascending order.
  var clientDescriptors: [Int32] {
    (0..<Int32(4096)).filter { descriptor in
      var name = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isConnected = withUnsafeMutablePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
      }
      return isConnected && name.sin_family == AF_INET && UInt16(bigEndian: name.sin_port) == server.address.port
    }
  }

  /// Whether every connection was accepted and has ended.
  ///
  /// Evaluated on the server's thread, so that no connection is between its end and its count. A connection that
  /// waits to be accepted has no descriptor yet and is not counted, so the listening socket is checked as well.
  var isSettled: Bool {
    let answer = try? server.thread?.performAndWait { [server] in
      guard server.connectionCount == server.endedConnectionCount else { return false }
      return server.listener.withDescriptor { descriptor in
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 0) == 0
      } ?? true
    }
    return answer ?? false
  }
}

/// The outcome of a request, as text for comparison with a literal: "200 body" or the code's name.
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

/// Makes a request repeatedly; see below.
func ends(_ client: HTTP.Client, _ request: HTTP.Request, times: Int) async -> [String] {
  await ends(client, [HTTP.Request](repeating: request, count: times))
}

/// Makes requests, each on the loader's thread once the previous one has ended, and returns the outcomes.
///
/// A task may wait minutes for one of few threads, and by then a kept connection is too old to be reused.
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

/// Creates a client, runs a body with it, and waits for its end.
func withClient<Value>(
  _ change: (inout HTTP.Configuration) -> Void = { _ in }, _ body: (HTTP.Client) async throws -> Value
) async throws -> Value {
  var configuration = HTTP.Configuration()
  configuration.idleTimeout = nil
  // On a busy machine, minutes may pass between two steps.
  configuration.connectionAge = 86_400
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

/// Returns bytes that each equal their index modulo 251.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
  let block = (0..<251).map { UInt8(($0 + start) % 251) }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + block.count)
  while bytes.count < count { bytes += block }
  bytes.removeLast(bytes.count - count)
  return bytes
}

/// Waits until a condition holds, without occupying the pool's few threads.
func eventually(_ condition: @escaping @Sendable () -> Bool) async {
  await elsewhere { waitUntil { condition() } }
}
