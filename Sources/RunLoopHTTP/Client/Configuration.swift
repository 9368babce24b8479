// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The configuration of a client.
  public struct Configuration: Sendable {
    /// The HTTP versions that a client may use.
    public enum Version: Sendable, Hashable {
      /// HTTP/2 if a TLS server offers it, otherwise HTTP/1.1.
      case automatic
      /// HTTP/1.1 only.
      case http1
      /// HTTP/2 from the start, even without TLS. The server must be known to support it.
      case http2
    }

    /// The maximum number of connections per host, 6 by default; further requests wait.
    public var connectionsPerHost = 6
    /// The longest time without any data sent or received, 60 seconds by default; nil disables the limit.
    ///
    /// It applies from the name lookup to the end of the body, except while the program holds the request up.
    public var idleTimeout: Duration? = .seconds(60)
    /// The longest time for a whole request, with redirects, retries and pauses; nil, the default, means no limit.
    public var totalTimeout: Duration?
    /// The longest time for connecting, including TLS, at least one millisecond; 30 seconds by default.
    public var connectTimeout: Duration = .seconds(30)
    /// The longest time that a request waits for a connection to its host; nil, the default, means no limit.
    ///
    /// The limit applies separately to each redirect and each time the request is sent again. When it times out, the
    /// request ends with ``HTTP/Error/Code/connectionWaitTimedOut``. It needs libcurl 7.80.
    public var connectionWaitTimeout: Duration?
    /// The maximum number of redirects to follow, 20 by default; 0 delivers the redirect response itself.
    public var maximumRedirects = 20
    /// The maximum size of a decoded body in bytes; nil, the default, means 64 MiB in memory and no limit elsewhere.
    public var maximumBodySize: Int64?
    /// The maximum total size of a response's headers and trailers in bytes, 256 KiB by default.
    public var maximumHeaderSize = 256 * 1024
    /// The HTTP versions to use, ``Version/automatic`` by default.
    public var version = Version.automatic
    /// Whether cookies are stored and sent; the default is `false`.
    public var storesCookies = false
    /// The credential for servers that request one; the default is nil.
    public var credential: Credential?
    /// The proxy to use, ``Proxy/none`` by default.
    public var proxy = Proxy.none
    /// The servers that the client trusts, by default those that the system trusts, and its own certificate.
    public var trust = Trust()
    /// The policy for retrying failed requests; by default, there are no retries.
    public var retry = Retry()
    /// The path of a Unix socket for all hosts, where a leading `@` means the abstract namespace; nil by default.
    public var unixSocket: String?
    /// Connection targets that replace hosts, such as `["example.org": "127.0.0.1:8443"]`; empty by default.
    ///
    /// Keys and values are names or numeric addresses with an optional port; a key with a port takes precedence over
    /// one without. The URL, the `Host` header, cookies, and the name that the certificate must match remain those of
    /// the request. Requests through a proxy or a Unix socket are not affected.
    public var hostOverrides: [String: String] = [:]
    /// Whether a malformation that browsers tolerate fails the request, `false` by default; see ``HTTP/Oddity``.
    public var strict = false
    /// Interceptors, called in order for each request and in reverse order for its response; empty by default.
    public var interceptors: [Interceptor] = []
    /// Whether ``Response/attempts`` and ``Error/attempts`` list every attempt to send a request; the default is
    /// `false`.
    public var reportsAttempts = false
    /// The value of the `User-Agent` header unless a request sets its own; the default is `RunLoopHTTP`.
    public var userAgent = "RunLoopHTTP"
    /// The maximum idle age in seconds of a connection that is reused; nil, the default, means libcurl's 118.
    ///
    /// For tests whose steps may take minutes on a busy machine.
    package var connectionAge: Int?

    /// Creates the default configuration.
    public init() {}

    static let memoryLimit: Int64 = 64 * 1024 * 1024
  }
}
