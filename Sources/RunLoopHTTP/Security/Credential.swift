// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A name and a password, for Basic and Digest authentication.
  ///
  /// It is sent to one origin, after that has asked for it.
  public struct Credential: Sendable, Hashable {
    /// The name.
    public var user: String
    /// The password.
    public var password: String
    /// The origin that it is for, such as `https://example.org`; nil means the origin of each request's own address,
    /// but not of an address that a redirect leads to.
    public var origin: String?

    /// Makes a credential.
    public init(user: String, password: String, origin: String? = nil) {
      self.user = user
      self.password = password
      self.origin = origin
    }
  }
}

extension HTTP {
  /// A server's request for a credential.
  public struct AuthenticationChallenge: Sendable {
    /// `basic` or `digest`; if there are several, the safest.
    public let scheme: String
    /// The server's name for the part of it that the credential is for; the server may use any text.
    public let realm: String
    /// The origin that asks: scheme, host and port, such as `https://example.org:443`.
    public let origin: String
    /// How many credentials this server has rejected in the course of this request.
    public let failureCount: Int
    /// The credential of the URL or of the configuration, if it is for this origin and was not rejected.
    public let proposed: Credential?
    /// The response that requests a credential.
    public let response: Response
  }
}

extension HTTP.Credential {
  /// Whether it can stand in a head.
  var isSendable: Bool { Self.isSendable(user) && Self.isSendable(password) }

  static func isSendable(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }
}

extension HTTP.Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A text without the password.
  public var description: String { "credential of \(user)" }
  /// A text without the password.
  public var debugDescription: String { description }
  /// A mirror without the password.
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}
