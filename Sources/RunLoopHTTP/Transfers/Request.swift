// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A request to a server.
  public struct Request: Sendable {
    /// The request method.
    public var method: Method
    /// The URL, with scheme http or https, and a user and a password that are sent only if the server asks for them.
    public var url: String
    /// The headers.
    ///
    /// `Host`, `User-Agent`, `Accept` and `Accept-Encoding` are added unless they are set here; the last also depends
    /// on ``decoding``. `Content-Length` and `Transfer-Encoding` are derived from the body.
    public var headers: Headers
    /// The request body; nil for none.
    public var body: Content?
    /// The maximum size of the decoded response body in bytes; nil, the default, means the configuration's limit.
    public var maximumBodySize: Int64?
    /// Whether the request may be sent again after a failure; the default is `true`.
    ///
    /// It is sent again under the ``Retry`` policy, after a reused connection has ended, or if the server has not
    /// processed it.
    ///
    /// Redirects, challenges and failed expectations are always followed.
    public var allowsResending = true
    /// The proxy for this request; nil, the default, means the proxy of the client's configuration.
    public var proxy: Proxy?
    /// When to decode the response body; the default is ``Decoding/negotiated``.
    public var decoding = Decoding.negotiated
    /// Whether codings in the request's own `Accept-Encoding` count as negotiated, as with `NSURLConnection`.
    package var decodesNamedCodings = false
    /// A closure that receives interim responses, such as 103 Early Hints, of this request and its redirects; the
    /// default is nil.
    ///
    /// It is called on the loader's thread and must not block. The status is in the range 100–199 except 101, which
    /// fails the request. A 100 only arrives if the server sends one unasked; the client does not request it.
    public var onInterim: (@Sendable (Response) -> Void)?

    /// Creates a request.
    public init(_ method: Method, _ url: String, headers: Headers = [:], body: Content? = nil) {
      self.method = method
      self.url = url
      self.headers = headers
      self.body = body
    }

    /// Creates a GET request.
    public init(_ url: String, headers: Headers = [:], body: Content? = nil) {
      self.init(.get, url, headers: headers, body: body)
    }
  }

  /// A server's response, without its body.
  public struct Response: Sendable, Hashable {
    /// The values of a response in one object, because responses are copied often.
    private final class Values: Sendable, Hashable {
      let status: Status
      let version: String
      let headers: Headers
      let url: String
      let redirectCount: Int

      init(status: Status, version: String, headers: Headers, url: String, redirectCount: Int) {
        self.status = status
        self.version = version
        self.headers = headers
        self.url = url
        self.redirectCount = redirectCount
      }

      static func == (left: Values, right: Values) -> Bool {
        left === right
          || left.status == right.status && left.status.reasonPhrase == right.status.reasonPhrase
            && left.version == right.version && left.headers == right.headers && left.url == right.url
            && left.redirectCount == right.redirectCount
      }

      func hash(into hasher: inout Hasher) {
        hasher.combine(status)
        hasher.combine(url)
        hasher.combine(headers)
      }
    }

    private let values: Values
    /// The status.
    public var status: Status { values.status }
    /// The protocol version: `1.0`, `1.1` or `2`.
    public var version: String { values.version }
    /// The headers.
    public var headers: Headers { values.headers }
    /// The URL that the response came from after redirects, without user and password.
    public var url: String { values.url }
    /// The number of redirects that were followed.
    public var redirectCount: Int { values.redirectCount }
    /// The duration of each phase of the request; zero by default, and for phases whose duration is unknown.
    public var timings = Timings()
    /// The reason for each time the request was sent again; empty by default.
    public internal(set) var resends: [ResendReason] = []
    /// The content codings that were decoded, in lower case and in the order the server applied them; empty, the
    /// default, if the body is delivered as it was sent.
    public var decodedFrom: [String] = []
    /// Malformations in the response that were tolerated, complete once the body is; empty by default.
    public internal(set) var oddities: [Oddity] = []
    /// The trailers, complete once the body is, and not checked against the headers; empty by default.
    public internal(set) var trailers: Headers {
      get { rest?.trailers ?? [:] }
      set { rest = Rest(trailers: newValue, attempts: attempts) }
    }
    /// Every attempt to send the request, if ``HTTP/Configuration/reportsAttempts`` is set; complete once the body is.
    public internal(set) var attempts: [AttemptReport] {
      get { rest?.attempts ?? [] }
      set { rest = Rest(trailers: trailers, attempts: newValue) }
    }
    private var rest: Rest?

    /// Values that few responses have, in an object to keep all other responses cheap to copy.
    private final class Rest: Sendable, Hashable {
      let trailers: Headers
      let attempts: [AttemptReport]

      init(trailers: Headers, attempts: [AttemptReport]) { (self.trailers, self.attempts) = (trailers, attempts) }

      static func == (left: Rest, right: Rest) -> Bool {
        left.trailers == right.trailers && left.attempts == right.attempts
      }

      func hash(into hasher: inout Hasher) { hasher.combine(trailers) }
    }
    /// Whether an interceptor supplied the response; the default is `false`.
    public var isIntercepted = false

    /// Creates a response, for use in an interceptor.
    public init(
      status: Status, headers: Headers = [:], url: String = "", version: String = "1.1", redirectCount: Int = 0
    ) {
      values = Values(status: status, version: version, headers: headers, url: url, redirectCount: redirectCount)
    }

    /// The length of the body before decoding, according to the headers; nil if they do not specify it.
    public var contentLength: Int64? { headers["Content-Length"].flatMap { Int64($0) } }
  }
}

extension HTTP.Response {
  /// Creates a response from the headers received for a request.
  init(_ head: Head, of hop: HTTP.Hop, status: HTTP.Status? = nil) {
    self.init(
      status: status ?? head.status, headers: head.headers, url: hop.address.text, version: head.version,
      redirectCount: hop.redirects)
  }
}

extension HTTP.Request {
  /// The request's scheme, host and port; nil if its URL cannot be parsed.
  package var origin: String? { (try? WebAddress(url))?.origin }

  /// The reason the request cannot be sent; nil if it can.
  var fault: String? {
    if let fault = method.fault { return fault }
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
