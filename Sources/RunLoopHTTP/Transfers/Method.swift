// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The method of a request.
  ///
  /// Methods are compared with regard to case, and are sent as they are written. A method that is not a token of at
  /// most 64 bytes can be made, and ends its request with ``HTTP/Error/Code/invalidRequest``.
  public struct Method: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the method.
    public let rawValue: String

    /// Makes a method of its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Makes a method of its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// The name of the method.
    public var description: String { rawValue }
  }
}

extension HTTP.Method {
  /// `GET`.
  public static let get = Self("GET")
  /// `HEAD`.
  public static let head = Self("HEAD")
  /// `POST`.
  public static let post = Self("POST")
  /// `PUT`.
  public static let put = Self("PUT")
  /// `DELETE`.
  public static let delete = Self("DELETE")
  /// `PATCH`.
  public static let patch = Self("PATCH")
  /// `OPTIONS`.
  public static let options = Self("OPTIONS")
  /// `TRACE`.
  public static let trace = Self("TRACE")
  /// `CONNECT`, which is for proxies: a request with it ends with ``HTTP/Error/Code/invalidRequest``.
  public static let connect = Self("CONNECT")

  /// Whether sending a request twice has the same effect as sending it once.
  var isIdempotent: Bool {
    switch self {
    case .get, .head, .put, .delete, .options, .trace: true
    default: false
    }
  }

  /// Whether a request announces a length of zero if it has no body.
  var usuallyHasBody: Bool { self == .post || self == .put || self == .patch }

  /// The reason the method cannot be sent; nil if it can.
  var fault: String? {
    guard HTTP.Headers.isToken(rawValue.utf8), rawValue.utf8.count <= 64 else { return "the method is not a token" }
    return self == .connect ? "CONNECT is for proxies" : nil
  }
}
