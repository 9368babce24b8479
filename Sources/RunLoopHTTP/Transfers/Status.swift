// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The status of a response.
  ///
  /// Two statuses are equal if their codes are. An integer literal creates a status without a reason phrase, so
  /// `response.status == 404` and `case 404:` compare the code.
  public struct Status: Hashable, Sendable, Comparable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The class of a status, given by the first digit of its code.
    public enum Kind: Sendable, Hashable {
      /// 1xx: interim response; the final one follows.
      case informational
      /// 2xx: the request succeeded.
      case successful
      /// 3xx: the client needs to take further action.
      case redirection
      /// 4xx: the request is invalid or not permitted.
      case clientError
      /// 5xx: the server failed to fulfill a valid request.
      case serverError
      /// A code that HTTP does not define.
      case other
    }

    /// The code, from 100 to 999.
    public let code: Int
    /// The server's phrase for the code, which may be empty, and always is in HTTP/2.
    public let reasonPhrase: String

    /// Creates a status.
    public init(code: Int, reasonPhrase: String = "") {
      self.code = code
      self.reasonPhrase = reasonPhrase
    }

    /// Creates a status without a reason phrase.
    public init(integerLiteral code: Int) { self.init(code: code) }

    /// The class of the status.
    public var kind: Kind {
      switch code {
      case 100...199: .informational
      case 200...299: .successful
      case 300...399: .redirection
      case 400...499: .clientError
      case 500...599: .serverError
      default: .other
      }
    }

    /// The code, followed by the reason phrase if there is one.
    public var description: String { reasonPhrase.isEmpty ? "\(code)" : "\(code) \(reasonPhrase)" }

    /// Returns whether both have the same code.
    public static func == (left: Status, right: Status) -> Bool { left.code == right.code }

    /// Returns whether the left code is smaller.
    public static func < (left: Status, right: Status) -> Bool { left.code < right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
  }
}

extension HTTP.Status {
  /// 200 OK.
  public static let ok = Self(code: 200, reasonPhrase: "OK")
  /// 201 Created.
  public static let created = Self(code: 201, reasonPhrase: "Created")
  /// 204 No Content.
  public static let noContent = Self(code: 204, reasonPhrase: "No Content")
  /// 206 Partial Content.
  public static let partialContent = Self(code: 206, reasonPhrase: "Partial Content")
  /// 301 Moved Permanently.
  public static let movedPermanently = Self(code: 301, reasonPhrase: "Moved Permanently")
  /// 302 Found.
  public static let found = Self(code: 302, reasonPhrase: "Found")
  /// 303 See Other.
  public static let seeOther = Self(code: 303, reasonPhrase: "See Other")
  /// 304 Not Modified.
  public static let notModified = Self(code: 304, reasonPhrase: "Not Modified")
  /// 307 Temporary Redirect.
  public static let temporaryRedirect = Self(code: 307, reasonPhrase: "Temporary Redirect")
  /// 308 Permanent Redirect.
  public static let permanentRedirect = Self(code: 308, reasonPhrase: "Permanent Redirect")
  /// 400 Bad Request.
  public static let badRequest = Self(code: 400, reasonPhrase: "Bad Request")
  /// 401 Unauthorized.
  public static let unauthorized = Self(code: 401, reasonPhrase: "Unauthorized")
  /// 403 Forbidden.
  public static let forbidden = Self(code: 403, reasonPhrase: "Forbidden")
  /// 404 Not Found.
  public static let notFound = Self(code: 404, reasonPhrase: "Not Found")
  /// 407 Proxy Authentication Required.
  public static let proxyAuthenticationRequired = Self(code: 407, reasonPhrase: "Proxy Authentication Required")
  /// 408 Request Timeout.
  public static let requestTimeout = Self(code: 408, reasonPhrase: "Request Timeout")
  /// 409 Conflict.
  public static let conflict = Self(code: 409, reasonPhrase: "Conflict")
  /// 410 Gone.
  public static let gone = Self(code: 410, reasonPhrase: "Gone")
  /// 412 Precondition Failed.
  public static let preconditionFailed = Self(code: 412, reasonPhrase: "Precondition Failed")
  /// 416 Range Not Satisfiable.
  public static let rangeNotSatisfiable = Self(code: 416, reasonPhrase: "Range Not Satisfiable")
  /// 417 Expectation Failed.
  public static let expectationFailed = Self(code: 417, reasonPhrase: "Expectation Failed")
  /// 421 Misdirected Request.
  public static let misdirectedRequest = Self(code: 421, reasonPhrase: "Misdirected Request")
  /// 429 Too Many Requests.
  public static let tooManyRequests = Self(code: 429, reasonPhrase: "Too Many Requests")
  /// 500 Internal Server Error.
  public static let internalServerError = Self(code: 500, reasonPhrase: "Internal Server Error")
  /// 502 Bad Gateway.
  public static let badGateway = Self(code: 502, reasonPhrase: "Bad Gateway")
  /// 503 Service Unavailable.
  public static let serviceUnavailable = Self(code: 503, reasonPhrase: "Service Unavailable")
  /// 504 Gateway Timeout.
  public static let gatewayTimeout = Self(code: 504, reasonPhrase: "Gateway Timeout")
}
