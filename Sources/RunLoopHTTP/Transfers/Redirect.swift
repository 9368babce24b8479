// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A request in flight, with its parsed URL, which is replaced with each redirect.
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
  init(_ request: HTTP.Request, at address: WebAddress, redirects: Int = 0) {
    self.init(
      address: address, method: request.method, headers: request.headers, body: request.body, redirects: redirects,
      allowsResending: request.allowsResending, decoding: request.decoding,
      decodesNamedCodings: request.decodesNamedCodings)
  }

  /// Returns the hop as a request for the program.
  ///
  /// - Parameter original: The request that led to this hop.
  func request(from original: HTTP.Request) -> HTTP.Request {
    var request = HTTP.Request(method, address.text, headers: headers, body: body)
    request.maximumBodySize = original.maximumBodySize
    request.allowsResending = allowsResending
    request.decoding = decoding
    return request
  }

  /// Returns the next hop of a redirect, or nil if the response is not a redirect, its `Location` is empty, or
  /// redirects are not followed.
  ///
  /// - Parameter maximum: The maximum number of redirects.
  func next(after status: HTTP.Status, _ headers: HTTP.Headers, maximum: Int) throws(HTTP.Error) -> HTTP.Hop? {
    guard Self.isRedirect(status), maximum > 0, let location = headers.reference(of: "Location"), !location.isEmpty
    else { return nil }
    guard redirects < maximum else {
      throw HTTP.Error(.tooManyRedirects, "there are more than \(maximum) redirects")
    }
    return try following(status, to: location)
  }

  /// Whether a status is a redirect that has a `Location`.
  private static func isRedirect(_ status: HTTP.Status) -> Bool {
    switch status {
    case 301, 302, 303, 307, 308: true
    default: false
    }
  }

  /// Whether the client adds its own `Accept-Encoding`.
  ///
  /// - Parameter range: The offset from which the body is requested; nil for the whole body.
  func asksForCodings(range: Int64?) -> Bool {
    decoding != .raw && range == nil && headers["Accept-Encoding"] == nil && headers["Range"] == nil
  }

  /// Headers that are only sent to the origin they were set for.
  static let secrets = ["Authorization", "Cookie", "Proxy-Authorization", "Host"]

  /// Returns the request that a response redirects to (RFC 9110, section 15.4).
  ///
  /// Headers with secrets are removed if the origin changes.
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
