// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The status of a response.
  ///
  /// Two statuses are equal if their codes are. An integer literal is a status without a reason phrase, so that
  /// `response.status == 404` and `case 404:` compare the code.
  public struct Status: Hashable, Sendable, Comparable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The class of a status, which is the first digit of its code.
    public enum Kind: Sendable, Hashable {
      /// 1xx: another response follows.
      case informational
      /// 2xx: the request was accepted.
      case successful
      /// 3xx: the client has to do something else.
      case redirection
      /// 4xx: the request is at fault.
      case clientError
      /// 5xx: the server is at fault.
      case serverError
      /// A code that HTTP does not define.
      case other
    }

    /// The code, from 100 to 999.
    public let code: Int
    /// The server's words for the code, which may be empty; HTTP/2 has none.
    public let reasonPhrase: String

    /// Makes a status.
    public init(code: Int, reasonPhrase: String = "") {
      self.code = code
      self.reasonPhrase = reasonPhrase
    }

    /// Makes a status without a reason phrase.
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

    /// Whether both have the same code.
    public static func == (left: Status, right: Status) -> Bool { left.code == right.code }

    /// Whether the left code is the smaller one.
    public static func < (left: Status, right: Status) -> Bool { left.code < right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
  }
}

extension HTTP.Status {
  /// 200.
  public static let ok = Self(code: 200, reasonPhrase: "OK")
  /// 201.
  public static let created = Self(code: 201, reasonPhrase: "Created")
  /// 204.
  public static let noContent = Self(code: 204, reasonPhrase: "No Content")
  /// 206.
  public static let partialContent = Self(code: 206, reasonPhrase: "Partial Content")
  /// 301.
  public static let movedPermanently = Self(code: 301, reasonPhrase: "Moved Permanently")
  /// 302.
  public static let found = Self(code: 302, reasonPhrase: "Found")
  /// 303.
  public static let seeOther = Self(code: 303, reasonPhrase: "See Other")
  /// 304.
  public static let notModified = Self(code: 304, reasonPhrase: "Not Modified")
  /// 307.
  public static let temporaryRedirect = Self(code: 307, reasonPhrase: "Temporary Redirect")
  /// 308.
  public static let permanentRedirect = Self(code: 308, reasonPhrase: "Permanent Redirect")
  /// 400.
  public static let badRequest = Self(code: 400, reasonPhrase: "Bad Request")
  /// 401.
  public static let unauthorized = Self(code: 401, reasonPhrase: "Unauthorized")
  /// 403.
  public static let forbidden = Self(code: 403, reasonPhrase: "Forbidden")
  /// 404.
  public static let notFound = Self(code: 404, reasonPhrase: "Not Found")
  /// 407.
  public static let proxyAuthenticationRequired = Self(code: 407, reasonPhrase: "Proxy Authentication Required")
  /// 408.
  public static let requestTimeout = Self(code: 408, reasonPhrase: "Request Timeout")
  /// 409.
  public static let conflict = Self(code: 409, reasonPhrase: "Conflict")
  /// 410.
  public static let gone = Self(code: 410, reasonPhrase: "Gone")
  /// 412.
  public static let preconditionFailed = Self(code: 412, reasonPhrase: "Precondition Failed")
  /// 416.
  public static let rangeNotSatisfiable = Self(code: 416, reasonPhrase: "Range Not Satisfiable")
  /// 417.
  public static let expectationFailed = Self(code: 417, reasonPhrase: "Expectation Failed")
  /// 421.
  public static let misdirectedRequest = Self(code: 421, reasonPhrase: "Misdirected Request")
  /// 429.
  public static let tooManyRequests = Self(code: 429, reasonPhrase: "Too Many Requests")
  /// 500.
  public static let internalServerError = Self(code: 500, reasonPhrase: "Internal Server Error")
  /// 502.
  public static let badGateway = Self(code: 502, reasonPhrase: "Bad Gateway")
  /// 503.
  public static let serviceUnavailable = Self(code: 503, reasonPhrase: "Service Unavailable")
  /// 504.
  public static let gatewayTimeout = Self(code: 504, reasonPhrase: "Gateway Timeout")
}
