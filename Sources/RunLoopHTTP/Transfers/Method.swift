// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The method of a request.
  ///
  /// Methods are case-sensitive and are sent as written. A method that is not a token of at most 64 bytes can be
  /// created, but its request ends with ``HTTP/Error/Code/invalidRequest``.
  public struct Method: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the method.
    public let rawValue: String

    /// Creates a method from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a method from its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// The name of the method.
    public var description: String { rawValue }
  }
}

extension HTTP.Method {
  /// The `GET` method.
  public static let get = Self("GET")
  /// The `HEAD` method.
  public static let head = Self("HEAD")
  /// The `POST` method.
  public static let post = Self("POST")
  /// The `PUT` method.
  public static let put = Self("PUT")
  /// The `DELETE` method.
  public static let delete = Self("DELETE")
  /// The `PATCH` method.
  public static let patch = Self("PATCH")
  /// The `OPTIONS` method.
  public static let options = Self("OPTIONS")
  /// The `TRACE` method.
  public static let trace = Self("TRACE")
  /// The `CONNECT` method, which is meant for proxies and fails with ``HTTP/Error/Code/invalidRequest``.
  public static let connect = Self("CONNECT")

  /// Whether sending a request twice has the same effect as sending it once.
  var isIdempotent: Bool {
    switch self {
    case .get, .head, .put, .delete, .options, .trace: true
    default: false
    }
  }

  /// Whether a request without a body sends `Content-Length: 0`.
  var usuallyHasBody: Bool { self == .post || self == .put || self == .patch }

  /// The reason the method cannot be sent; nil if it can.
  var fault: String? {
    guard HTTP.Headers.isToken(rawValue.utf8), rawValue.utf8.count <= 64 else { return "the method is not a token" }
    return self == .connect ? "CONNECT is for proxies" : nil
  }
}
