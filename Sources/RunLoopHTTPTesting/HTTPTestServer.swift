// SPDX-License-Identifier: Apache-2.0

import CRunLoopHTTP2
public import RunLoopCore
public import RunLoopSockets
import RunLoopThreads

/// An HTTP server for tests of clients, which answers from a script and ends connections as real servers do.
///
/// It speaks HTTP/1.1, and HTTP/2 if ``Options/http2`` is set, with TLS or without. Whatever is no request it answers
/// with 400, or ends the connection. It can be used from any thread, and stops when its last reference is released.
public final class HTTPTestServer: Sendable {
  /// Called on the server's loop with each request; returns the response.
  ///
  /// With nil the server sends nothing by itself: the request's own methods respond, now, later or never.
  public typealias Handler = @Sendable (Request) -> Response?

  /// How a server behaves.
  public struct Options: Sendable {
    /// What secures the connections; with nil they are plain.
    ///
    /// Unless it names application protocols, the server offers those that it speaks.
    public var tls: TLSServerConfiguration?
    /// Whether clients may use HTTP/2, by their first bytes or with TLS by ALPN; this needs libnghttp2.
    public var http2 = false
    /// The number of requests after which a connection ends: it is announced with the last response, or by GOAWAY.
    ///
    /// The corresponding setting of nginx is `keepalive_requests`.
    public var requestsPerConnection: Int?
    /// How long a connection may be without a request before it ends, by the loop's clock; nil means indefinitely.
    public var idleTimeout: Duration?
    /// What an idle connection of HTTP/1 is sent before its end, such as a response with the status 408.
    public var idleResponse: Response?
    /// How many bytes a request's body may have; a longer one is answered with 413, or just ends the
    /// connection of HTTP/2.
    public var maximumBodySize = 64 * 1024 * 1024

    /// The usual behaviour: plain HTTP/1.1 that never ends a connection by itself.
    public init() {}
  }

  /// Where the server listens, with the port that the system has chosen.
  public var address: SocketAddress { listener.address }

  private let core: ServerCore
  let listener: ListeningSocket
  /// The thread that runs the loop, unless it is somebody else's.
  let thread: ResidentThread?

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - address: Where to listen; port zero lets the system choose.
  ///   - loop: The loop that serves it in its default mode, such as one on virtual time; with nil, a resident thread of
  ///     the server's own.
  ///   - options: How it behaves.
  ///   - handler: Called with each request.
  /// - Throws: ``HTTPTestServerError``, a `SocketError` if it cannot listen, a `TLSError` of its identity, or a
  ///   `ThreadError`.
  public init(
    at address: SocketAddress = .loopback(port: 0), on loop: RunLoop? = nil, options: Options = Options(),
    handler: @escaping Handler
  ) throws {
    if options.http2 { try Self.openLibrary() }
    var listening = ListeningSocket.Options()
    // Responses are limited by the tests that make them.
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

  /// Starts a server that responds from a script.
  ///
  /// - Parameters:
  ///   - address: Where to listen.
  ///   - loop: The loop that serves it; with nil, a resident thread of the server's own.
  ///   - options: How it behaves.
  ///   - script: The responses, by the method and the path ("GET /path") or by the path alone. They are sent in their
  ///     order, and the last one repeatedly; other requests are answered with 404.
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
  /// The URL of a path.
  ///
  /// - Parameters:
  ///   - path: The path, with a query if there is one.
  ///   - host: The host; with nil, the address at which the server listens.
  public func url(_ path: String = "/", host: String? = nil) -> String {
    let own = address.host ?? "127.0.0.1"
    let host = host ?? (address.family == .ipv6 ? "[\(own)]" : own)
    return "\(core.options.tls == nil ? "http" : "https")://\(host):\(address.port ?? 0)\(path)"
  }

  /// The requests so far, in the order in which they were complete.
  public var requests: [Request] { core.state.withLock { $0.requests } }

  /// How many connections were accepted.
  public var connectionCount: Int { core.state.withLock { $0.connectionCount } }

  /// How many of these connections have ended.
  public var endedConnectionCount: Int { core.state.withLock { $0.connectionCount - $0.connections.count } }

  /// Ends the connections as a server does that reads its configuration again, and serves new ones as before.
  ///
  /// Connections of HTTP/1 that are kept are closed at once, others with the response to their request; on those of
  /// HTTP/2, a GOAWAY says which requests are still answered.
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
