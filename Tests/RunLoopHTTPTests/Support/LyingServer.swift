// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopThreads
import TestSupport

@testable import RunLoopHTTP
@testable import RunLoopHTTPTesting

/// A server that answers whatever a test wants, byte by byte.
final class LyingServer: Sendable {
  /// A request, and the connection that it came on.
  struct Exchange: Sendable {
    let request: HTTPTestServer.Request

    /// "GET /path".
    var line: String { request.line }
    var path: String { request.path }
    var body: [UInt8] { request.body }
    /// The headers, as they were sent.
    var head: String { request.headers.map { "\($0.name): \($0.value)\r\n" }.joined() }
    /// How many requests came on this connection before.
    var number: Int { request.number }

    func field(_ name: String) -> String? { request.header(name) }
    func send(_ bytes: [UInt8]) { request.send(bytes) }
    func send(_ text: String) { send(Array(text.utf8)) }
    /// An answer with a length.
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
    /// Ends the connection as somebody between would, who knows nothing of its encryption.
    func cut() { request.wire.perform { $0.socket.withDescriptor { _ = shutdown($0, Int32(SHUT_WR)) } } }
  }

  private let server: HTTPTestServer

  /// - Parameters:
  ///   - address: Where it listens.
  ///   - tls: What secures its connections; nil: they are plain.
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

  /// The lines of all requests, such as "GET /path", in their order.
  var requests: Box<[String]> { Box(server.requests.map(\.line)) }
  /// How many connections were made, and how many of them have ended.
  var accepted: Box<Int> { Box(server.connectionCount) }
  var ended: Box<Int> { Box(server.endedConnectionCount) }

  /// The descriptors of this process that are connected to the server, in their order.
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

  /// Whether every connection that was made was accepted and has ended.
  ///
  /// It is asked on the server's thread, where no connection is between its end and its count. What waits to be
  /// accepted has no descriptor yet and is not counted: without looking for it, all of none would have ended.
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
  // On a machine that is busy, minutes may pass between two steps.
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
