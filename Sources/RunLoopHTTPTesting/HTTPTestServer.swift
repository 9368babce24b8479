// SPDX-License-Identifier: Apache-2.0

import CRunLoopHTTP2
public import RunLoopCore
public import RunLoopSockets
import RunLoopThreads

/// An HTTP server for testing clients, with scripted responses and the connection endings of real servers.
///
/// It supports HTTP/1.1, and HTTP/2 if ``Options/http2`` is set, with and without TLS. It responds to malformed
/// requests with 400, or ends the connection. It can be used from any thread, and stops when it is deallocated.
public final class HTTPTestServer: Sendable {
  /// Called on the server's loop with each request, to return the response.
  ///
  /// If it returns nil, the server sends nothing by itself: respond with the request's methods, now, later or never.
  public typealias Handler = @Sendable (Request) -> Response?

  /// The configuration of a server.
  public struct Options: Sendable {
    /// The TLS configuration; nil, the default, means plaintext connections.
    ///
    /// Unless it specifies application protocols, the server offers those that it supports.
    public var tls: TLSServerConfiguration?
    /// Whether to allow HTTP/2, by prior knowledge or by ALPN, which needs libnghttp2; the default is `false`.
    public var http2 = false
    /// The number of requests per connection, whose last response (or a GOAWAY) announces the end; nil, the default,
    /// means no limit.
    ///
    /// The corresponding nginx setting is `keepalive_requests`.
    public var requestsPerConnection: Int?
    /// How long a connection may be idle before it ends, by the loop's clock; nil, the default, means indefinitely.
    public var idleTimeout: Duration?
    /// The response sent on an idle HTTP/1 connection before it ends, such as one with status 408; the default is nil.
    public var idleResponse: Response?
    /// The maximum size of a request's body in bytes, 64 MiB by default; a longer one results in a 413 response, or
    /// ends the HTTP/2 connection.
    public var maximumBodySize = 64 * 1024 * 1024

    /// Creates the default configuration: plaintext HTTP/1.1 on connections that the server never ends by itself.
    public init() {}
  }

  /// The address the server listens on, with the port that the system has chosen.
  public var address: SocketAddress { listener.address }

  private let core: ServerCore
  let listener: ListeningSocket
  /// The server's own thread; nil if the loop was passed in.
  let thread: ResidentThread?

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - address: The address to listen on. With port zero, the system chooses a port.
  ///   - loop: The loop that runs the server in its default mode, such as one on virtual time. If it is nil, the
  ///     server starts a resident thread of its own.
  ///   - options: The configuration.
  ///   - handler: Called with each request.
  /// - Throws: ``HTTPTestServerError``, a `SocketError` if it cannot listen, a `TLSError` for an invalid identity, or
  ///   a `ThreadError`.
  public init(
    at address: SocketAddress = .loopback(port: 0), on loop: RunLoop? = nil, options: Options = Options(),
    handler: @escaping Handler
  ) throws {
    if options.http2 { try Self.openLibrary() }
    var listening = ListeningSocket.Options()
    // The tests decide how large the responses are.
    listening.accepted.highWater = 1 << 30
    if var tls = options.tls {
      if tls.applicationProtocols.isEmpty, options.http2 { tls.applicationProtocols = ["h2", "http/1.1"] }
      listening.accepted.tls = try TLSContext(tls)
    }
    listener = try ListeningSocket(at: address, options: listening)
    thread = loop == nil ? try ResidentThread(name: "HTTPTestServer") : nil
    guard let loop = loop ?? thread?.runLoop else { preconditionFailure("a thread without a loop") }
    let core = ServerCore(loop, options, handler)
    self.core = core
    listener.handler = { _, event in if case .accepted(let socket) = event { core.accept(socket) } }
    try loop.add(listener, forMode: .default)
  }

  /// Starts a server with scripted responses.
  ///
  /// - Parameters:
  ///   - address: The address to listen on.
  ///   - loop: The loop that runs the server. If it is nil, the server starts a resident thread of its own.
  ///   - options: The configuration.
  ///   - script: The responses, by method and path ("GET /path") or by path alone. They are sent in order, and the
  ///     last one repeatedly. The response to other requests is 404.
  /// - Throws: The errors of ``init(at:on:options:handler:)``.
  public convenience init(
    at address: SocketAddress = .loopback(port: 0), on loop: RunLoop? = nil, options: Options = Options(),
    script: [String: [Response]]
  ) throws {
    let script = Script(script)
    try self.init(at: address, on: loop, options: options) { script.next(for: $0) }
  }

  deinit { stop() }

  private static func openLibrary() throws(HTTPTestServerError) {
    var detail = [CChar](repeating: 0, count: 512)
    guard crh_open(&detail, detail.count) != 0 else { return }
    throw .libraryMissing(String(decoding: detail.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }
}

extension HTTPTestServer {
  /// Returns the URL for a path.
  ///
  /// - Parameters:
  ///   - path: The path, with an optional query.
  ///   - host: The host. Defaults to the address the server listens on.
  public func url(_ path: String = "/", host: String? = nil) -> String {
    let own = address.host ?? "127.0.0.1"
    let host = host ?? (address.family == .ipv6 ? "[\(own)]" : own)
    return "\(core.options.tls == nil ? "http" : "https")://\(host):\(address.port ?? 0)\(path)"
  }

  /// All requests so far, in the order they were completed.
  public var requests: [Request] { core.state.withLock { $0.requests } }

  /// The number of accepted connections.
  public var connectionCount: Int { core.state.withLock { $0.connectionCount } }

  /// The number of accepted connections that have ended.
  public var endedConnectionCount: Int { core.state.withLock { $0.connectionCount - $0.connections.count } }

  /// Ends the connections like a server that reloads its configuration, and keeps accepting new ones.
  ///
  /// Idle HTTP/1 connections are closed at once, and others after the response to their current request. On HTTP/2
  /// connections, a GOAWAY announces which requests will still receive a response.
  public func reload() {
    for connection in core.state.withLock({ $0.connections.values.map { $0 } }) { connection.perform { $0.retire() } }
  }

  /// Stops listening, and closes all connections.
  ///
  /// Calling it again has no effect.
  public func stop() {
    listener.invalidate()
    core.stop()
    thread?.stop()
  }
}
