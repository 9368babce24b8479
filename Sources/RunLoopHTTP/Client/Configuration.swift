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
    /// Whether a response that browsers read although something in it is wrong is an error; see ``HTTP/Oddity``.
    public var strict = false
    /// Called in their order with each request before it is sent.
    public var interceptors: [Interceptor] = []
    /// The value of `User-Agent`, unless a request sets another.
    public var userAgent = "RunLoopHTTP"

    /// The usual behaviour.
    public init() {}

    static let memoryLimit: Int64 = 64 * 1024 * 1024
  }

  /// Called by the loader's thread with a request before it is sent; it must return at once.
  public typealias Interceptor = @Sendable (Request) -> Interception

  /// The result of an interceptor for a request.
  public enum Interception: Sendable {
    /// The request goes on, as it was or changed.
    case proceed(Request)
    /// This is the response; nothing is sent, and no library is needed.
    case respond(Response, Body)
    /// The request ends with an error.
    case fail(Error.Code, String)
  }
}
