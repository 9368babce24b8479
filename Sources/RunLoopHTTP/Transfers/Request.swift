// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A request to a server.
  public struct Request: Sendable {
    /// The method.
    public var method: Method
    /// The URL: http or https, with an optional user and password, which are sent only if the server asks.
    public var url: String
    /// The header fields.
    ///
    /// `Host`, `User-Agent`, `Accept` and `Accept-Encoding` are added unless they are here; the last also depends on
    /// ``decoding``. `Content-Length` and `Transfer-Encoding` come from the body.
    public var headers: Headers
    /// The body of the request.
    public var body: Content?
    /// How many decoded bytes the response's body may have, in place of the limit of the client's configuration.
    public var maximumBodySize: Int64?
    /// Whether the request may be sent again if it fails: as ``Retry`` says, after a kept connection has ended, and
    /// after the server has left it unprocessed.
    ///
    /// Redirects, challenges and expectations that are not met are followed in any case.
    public var allowsResending = true
    /// The proxy for this request, in place of that of the client's configuration.
    public var proxy: Proxy?
    /// When the body of the response is decoded.
    public var decoding = Decoding.negotiated
    /// Whether codings that the request's own `Accept-Encoding` names count as negotiated, as `NSURLConnection` has it.
    package var decodesNamedCodings = false
    /// Called by the loader's thread with each interim response, such as 103 with early hints, of the request and of
    /// those that follow it; it must return at once.
    ///
    /// The status is from 100 to 199, and not 101, which ends the request with an error. A 100 arrives only if a server
    /// sends it; the client does not ask for it.
    public var onInterim: (@Sendable (Response) -> Void)?

    /// Makes a request.
    public init(_ method: Method, _ url: String, headers: Headers = [:], body: Content? = nil) {
      self.method = method
      self.url = url
      self.headers = headers
      self.body = body
    }

    /// Makes a request with the method GET.
    public init(_ url: String, headers: Headers = [:], body: Content? = nil) {
      self.init(.get, url, headers: headers, body: body)
    }
  }

  /// A server's response, without its body.
  public struct Response: Sendable, Hashable {
    /// A response is passed on several times; as an object, a copy of its values is one reference.
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
    /// The version of the protocol: `1.0`, `1.1` or `2`.
    public var version: String { values.version }
    /// The header fields.
    public var headers: Headers { values.headers }
    /// The URL that has responded, after redirects; without user and password.
    public var url: String { values.url }
    /// How many redirects were followed.
    public var redirectCount: Int { values.redirectCount }
    /// How long the parts of the request took, as far as they are known.
    public var timings = Timings()
    /// Why the request was sent again, each time; empty if it was sent once.
    public internal(set) var resends: [ResendReason] = []
    /// The content codings that the body was decoded from, in lower case and in the order in which the server applied
    /// them; empty if it is delivered as it was sent.
    public var decodedFrom: [String] = []
    /// What was wrong with the response and was passed over; complete when the body is.
    public internal(set) var oddities: [Oddity] = []
    /// The fields that followed the body; complete when the body is, and not checked against the headers.
    public internal(set) var trailers: Headers {
      get { rest?.trailers ?? [:] }
      set { rest = Rest(trailers: newValue, attempts: attempts) }
    }
    /// Each time the request was sent, if ``HTTP/Configuration/reportsAttempts`` asks for it; complete when the body
    /// is.
    public internal(set) var attempts: [AttemptReport] {
      get { rest?.attempts ?? [] }
      set { rest = Rest(trailers: trailers, attempts: newValue) }
    }
    private var rest: Rest?

    /// What few responses have; as an object, so that the others are copied as before.
    private final class Rest: Sendable, Hashable {
      let trailers: Headers
      let attempts: [AttemptReport]

      init(trailers: Headers, attempts: [AttemptReport]) { (self.trailers, self.attempts) = (trailers, attempts) }

      static func == (left: Rest, right: Rest) -> Bool {
        left.trailers == right.trailers && left.attempts == right.attempts
      }

      func hash(into hasher: inout Hasher) { hasher.combine(trailers) }
    }
    /// Whether the response is from an interceptor of the program.
    public var isIntercepted = false

    /// Makes a response, as an interceptor does.
    public init(
      status: Status, headers: Headers = [:], url: String = "", version: String = "1.1", redirectCount: Int = 0
    ) {
      values = Values(status: status, version: version, headers: headers, url: url, redirectCount: redirectCount)
    }

    /// The length of the body before it is decoded, as the headers announce it; nil if they do not.
    public var contentLength: Int64? { headers["Content-Length"].flatMap { Int64($0) } }
  }
}

extension HTTP.Response {
  /// The response whose head has arrived for a request.
  init(_ head: Head, of hop: HTTP.Hop, status: HTTP.Status? = nil) {
    self.init(
      status: status ?? head.status, headers: head.headers, url: hop.address.text, version: head.version,
      redirectCount: hop.redirects)
  }
}

extension HTTP.Request {
  /// Its scheme, host and port; nil if its URL cannot be read.
  package var origin: String? { (try? WebAddress(url))?.origin }

  /// Why it cannot be sent; nil if it can.
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
