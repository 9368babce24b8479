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
  /// Whether a status says where to go on.
  static func isRedirect(_ status: HTTP.Status) -> Bool {
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
