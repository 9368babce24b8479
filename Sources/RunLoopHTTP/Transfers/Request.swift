// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A request to a server.
  public struct Request: Sendable {
    /// The method, such as `GET`; it is sent as it is written.
    public var method: String
    /// The address: http or https, with an optional user and password, which are sent only if the server asks.
    public var url: String
    /// The fields of the head.
    ///
    /// `Host`, `User-Agent`, `Accept` and `Accept-Encoding` are added unless they are here. `Content-Length` and
    /// `Transfer-Encoding` come from the body.
    public var headers: Headers
    /// The body of the request.
    public var body: Content?
    /// How many decoded bytes the answer's body may have, in place of the limit of the client's configuration.
    public var maximumBodySize: Int64?

    /// Makes a request.
    public init(_ url: String, method: String = "GET", headers: Headers = [:], body: Content? = nil) {
      self.url = url
      self.method = method
      self.headers = headers
      self.body = body
    }
  }

  /// A server's answer, without its body.
  public struct Response: Sendable, Hashable {
    /// What an answer is handed on with several times, so that a copy is one reference.
    private final class Values: Sendable, Hashable {
      let status: Int
      let version: String
      let reason: String
      let headers: Headers
      let url: String
      let redirects: Int

      init(status: Int, version: String, reason: String, headers: Headers, url: String, redirects: Int) {
        self.status = status
        self.version = version
        self.reason = reason
        self.headers = headers
        self.url = url
        self.redirects = redirects
      }

      static func == (left: Values, right: Values) -> Bool {
        left === right
          || left.status == right.status && left.version == right.version && left.reason == right.reason
            && left.headers == right.headers && left.url == right.url && left.redirects == right.redirects
      }

      func hash(into hasher: inout Hasher) {
        hasher.combine(status)
        hasher.combine(url)
        hasher.combine(headers)
      }
    }

    private let values: Values
    /// The status, from 100 to 999.
    public var status: Int { values.status }
    /// The version of the protocol: `1.0`, `1.1` or `2`.
    public var version: String { values.version }
    /// The reason phrase, which may be empty.
    public var reason: String { values.reason }
    /// The fields of the head.
    public var headers: Headers { values.headers }
    /// The address that has answered, after redirects; without user and password.
    public var url: String { values.url }
    /// How many redirects were followed.
    public var redirects: Int { values.redirects }
    /// How long the parts of the request took, as far as they are known.
    public var timings = Timings()
    /// Whether the program's interceptor has answered.
    public var isIntercepted = false

    /// Makes an answer, as an interceptor does.
    public init(
      status: Int, headers: Headers = [:], url: String = "", reason: String = "", version: String = "1.1",
      redirects: Int = 0
    ) {
      values = Values(
        status: status, version: version, reason: reason, headers: headers, url: url, redirects: redirects)
    }

    /// The length of the body before it is decoded, as the head announces it; nil if it does not.
    public var contentLength: Int64? { headers["Content-Length"].flatMap { Int64($0) } }
  }

  /// How long the parts of a request took, counted from when the last connection was asked for.
  public struct Timings: Sendable, Hashable {
    /// The time until the connection was made; zero if an existing connection was used.
    public var connected: Duration = .zero
    /// The time until the encryption was agreed on; zero if there is none.
    public var secured: Duration = .zero
    /// The time until the request was about to be sent.
    public var sent: Duration = .zero
    /// The time until the first byte of the answer.
    public var firstByte: Duration = .zero
  }
}

extension HTTP.Request {
  /// Its scheme, host and port; nil if its address cannot be read.
  package var origin: String? { (try? WebAddress(url))?.origin }

  /// Whether sending it twice is as good as sending it once.
  var isIdempotent: Bool { Self.isIdempotent(method) }

  static func isIdempotent(_ method: String) -> Bool {
    ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method)
  }

  /// Why it cannot be sent; nil if it can.
  var fault: String? {
    guard HTTP.Headers.isToken(method.utf8), method.utf8.count <= 64 else { return "the method is not a token" }
    guard method != "CONNECT" else { return "CONNECT is for proxies" }
    for field in headers.fields {
      guard HTTP.Headers.isToken(field.name.utf8) else { return "the name of a header field is not a token" }
      guard HTTP.Headers.isValue(field.value) else {
        return "the value of \(field.name) has a control character"
      }
    }
    guard headers["Transfer-Encoding"] == nil else { return "Transfer-Encoding comes from the body" }
    for length in headers.values(of: "Content-Length") {
      guard let body, let known = body.length, length == String(known) else {
        return "Content-Length is not the length of the body"
      }
    }
    return nil
  }
}
