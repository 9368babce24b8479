// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// How a client behaves.
  public struct Configuration: Sendable {
    /// Which versions of the protocol are spoken.
    public enum Version: Sendable, Hashable {
      /// HTTP/2 where an encrypted server offers it, otherwise HTTP/1.1.
      case automatic
      /// HTTP/1.1 only.
      case http1
      /// HTTP/2 at once, even without encryption, where the server has to be known to speak it.
      case http2
    }

    /// How many connections there are to a host at most; further requests wait.
    public var connectionsPerHost = 6
    /// How long nothing may come or go, from the look-up of the name to the end of the body, while the request is not
    /// held; nil means indefinitely.
    public var idleTimeout: Duration? = .seconds(60)
    /// How long a request may take in all, with redirects, retries and pauses; nil means indefinitely.
    public var totalTimeout: Duration?
    /// How long making a connection may take, with its encryption; one millisecond at least.
    public var connectTimeout: Duration = .seconds(30)
    /// How many redirects are followed; with zero, an answer that redirects is the answer.
    public var maximumRedirects = 20
    /// How many decoded bytes a body may have; nil means 64 MiB where it is kept in memory, and any number elsewhere.
    public var maximumBody: Int64?
    /// How many bytes the heads and the trailer of an answer may have together.
    public var maximumHead = 256 * 1024
    /// Which versions of the protocol are spoken.
    public var version = Version.automatic
    /// Whether cookies are kept and sent.
    public var storesCookies = false
    /// What the client shows to a server that asks who it is.
    public var credential: Credential?
    /// The proxy that is asked.
    public var proxy = Proxy.none
    /// Whom the client trusts, and how it shows who it is.
    public var trust = Trust()
    /// When a request that failed is made again.
    public var retry = Retry()
    /// The path of a Unix socket at which all hosts are reached; one that begins with `@` is outside the file system.
    public var unixSocket: String?
    /// Called in their order with each request before it is sent.
    public var interceptors: [Interceptor] = []
    /// What is sent as `User-Agent`, unless a request says something else.
    public var userAgent = "RunLoopNetworking"

    /// The usual behaviour.
    public init() {}

    static let memoryLimit: Int64 = 64 * 1024 * 1024
  }

  /// Called by the loader's thread with a request before it is sent; it returns at once.
  public typealias Interceptor = @Sendable (Request) -> Interception

  /// What an interceptor makes of a request.
  public enum Interception: Sendable {
    /// The request goes on, as it was or changed.
    case proceed(Request)
    /// This is the answer; nothing is sent, and no library is needed.
    case answer(Response, Body)
    /// The request ends with an error.
    case fail(Error.Code, String)
  }
}
