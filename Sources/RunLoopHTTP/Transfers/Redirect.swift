// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A request as it is on its way: its address is read, and it changes with each redirect.
  struct Hop: Sendable {
    var address: WebAddress
    var method: HTTP.Method
    var headers: Headers
    var body: Content?
    var redirects = 0
    var allowsResending = true
    var decoding = Decoding.negotiated
    var decodesNamedCodings = false
  }
}

extension HTTP.Hop {
  /// A request at its address.
  init(_ request: HTTP.Request, at address: WebAddress, redirects: Int = 0) {
    self.init(
      address: address, method: request.method, headers: request.headers, body: request.body, redirects: redirects,
      allowsResending: request.allowsResending, decoding: request.decoding,
      decodesNamedCodings: request.decodesNamedCodings)
  }

  /// The request as the program sees it.
  ///
  /// - Parameter original: The request that has led to it.
  func request(from original: HTTP.Request) -> HTTP.Request {
    var request = HTTP.Request(method, address.text, headers: headers, body: body)
    request.maximumBodySize = original.maximumBodySize
    request.allowsResending = allowsResending
    request.decoding = decoding
    return request
  }

  /// Where a response leads; nil if it leads nowhere, or none is followed.
  ///
  /// - Parameter maximum: How many redirects are followed.
  func next(after status: HTTP.Status, _ headers: HTTP.Headers, maximum: Int) throws(HTTP.Error) -> HTTP.Hop? {
    guard Self.isRedirect(status), maximum > 0, let location = headers["Location"] else { return nil }
    guard redirects < maximum else {
      throw HTTP.Error(.tooManyRedirects, "there are more than \(maximum) redirects")
    }
    return try following(status, to: location)
  }

  /// Whether a status says where to go on.
  private static func isRedirect(_ status: HTTP.Status) -> Bool {
    switch status {
    case 301, 302, 303, 307, 308: true
    default: false
    }
  }

  /// Whether the client asks for codings by a field of its own.
  ///
  /// - Parameter range: From which byte on the body is asked for.
  func asksForCodings(range: Int64?) -> Bool {
    decoding != .raw && range == nil && headers["Accept-Encoding"] == nil && headers["Range"] == nil
  }

  /// Fields that are meant for one origin.
  static let secrets = ["Authorization", "Cookie", "Proxy-Authorization", "Host"]

  /// The request that an answer sends us to, as RFC 9110 has it in section 15.4.
  ///
  /// What is secret stays with the origin that it was meant for.
  func following(_ status: HTTP.Status, to location: String) throws(HTTP.Error) -> HTTP.Hop {
    var next = self
    next.redirects += 1
    do throws(WebAddress.Failure) {
      next.address = try address.following(location)
    } catch {
      let detail =
        switch error {
        case .scheme(let scheme): "the redirect leads to the scheme \(scheme)"
        case .malformed(let reason): "the redirect leads to an address that cannot be read: \(reason)"
        }
      throw HTTP.Error(.redirectRejected, url: address.safeText, detail)
    }
    let losesBody =
      status == 303 ? method != .head && method != .get : (status == 301 || status == 302) && method == .post
    if losesBody {
      next.method = .get
      next.body = nil
      next.headers.removeAll(
        of: "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location")
    }
    if next.address.origin != address.origin {
      for name in Self.secrets { next.headers.removeAll(of: name) }
    }
    return next
  }
}
