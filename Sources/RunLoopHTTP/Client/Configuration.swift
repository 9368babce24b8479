// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// How a client behaves.
  public struct Configuration: Sendable {
    /// The versions of the protocol that are used.
    public enum Version: Sendable, Hashable {
      /// HTTP/2 where an encrypted server offers it, otherwise HTTP/1.1.
      case automatic
      /// HTTP/1.1 only.
      case http1
      /// HTTP/2 at once, even without encryption; the server has to be known to support it.
      case http2
    }

    /// The largest number of connections to a host; further requests wait.
    public var connectionsPerHost = 6
    /// How long nothing may be sent or received, from the look-up of the name to the end of the body, while the request
    /// is not held; nil means indefinitely.
    public var idleTimeout: Duration? = .seconds(60)
    /// How long a request may take in all, with redirects, retries and pauses; nil means indefinitely.
    public var totalTimeout: Duration?
    /// How long making a connection may take, including its encryption; at least one millisecond.
    public var connectTimeout: Duration = .seconds(30)
    /// How long a request may wait for a connection to its host to become free; nil means indefinitely.
    ///
    /// The wait begins anew with each redirect and each time the request is sent again. Then the request ends with
    /// ``HTTP/Error/Code/connectionWaitTimedOut``. It needs libcurl 7.80.
    public var connectionWaitTimeout: Duration?
    /// How many redirects are followed; with zero, a response that redirects is delivered.
    public var maximumRedirects = 20
    /// How many decoded bytes a body may have; nil means 64 MiB where it is kept in memory, and any number elsewhere.
    public var maximumBodySize: Int64?
    /// How many bytes the headers and the trailers of a response may have together.
    public var maximumHeaderSize = 256 * 1024
    /// The versions of the protocol that are used.
    public var version = Version.automatic
    /// Whether cookies are kept and sent.
    public var storesCookies = false
    /// The credential for a server that asks for one.
    public var credential: Credential?
    /// The proxy that is used.
    public var proxy = Proxy.none
    /// The servers that the client trusts, and its own certificate.
    public var trust = Trust()
    /// When a request that failed is made again.
    public var retry = Retry()
    /// The path of a Unix socket at which all hosts are reached; one that begins with `@` is outside the file system.
    public var unixSocket: String?
    /// Where hosts are connected to instead, such as `["example.org": "127.0.0.1:8443"]`.
    ///
    /// Each host, and each place, is a name or a numeric address, perhaps with a port; a host with a port comes before
    /// one without. The URL, the `Host` field, cookies, and the name that the certificate has to be for, remain those
    /// of the request. Requests through a proxy or a Unix socket are not concerned.
    public var hostOverrides: [String: String] = [:]
    /// Whether a response that browsers read although something in it is wrong is an error; see ``HTTP/Oddity``.
    public var strict = false
    /// Called with each request before it is sent, in their order, and with its response, in the reverse order.
    public var interceptors: [Interceptor] = []
    /// Whether ``Response/attempts`` and ``Error/attempts`` report each time a request was sent.
    public var reportsAttempts = false
    /// The value of `User-Agent`, unless a request sets another.
    public var userAgent = "RunLoopHTTP"
    /// For how many seconds a kept connection may rest and be used again; nil means libcurl's 118.
    ///
    /// For tests whose steps may take minutes on a busy machine.
    package var connectionAge: Int?

    /// The usual behaviour.
    public init() {}

    static let memoryLimit: Int64 = 64 * 1024 * 1024
  }
}
