// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A user name and a password for Basic and Digest authentication.
  ///
  /// It is sent to a single origin, and only after that origin has asked for it.
  public struct Credential: Sendable, Hashable {
    /// The user name.
    public var user: String
    /// The password.
    public var password: String
    /// The origin that the credential is for, such as `https://example.org`; nil means the origin of each request's
    /// own URL, but not of a URL that a redirect leads to.
    public var origin: String?

    /// Creates a credential.
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
    /// The scheme, `basic` or `digest`; the more secure one if the server offers both.
    public let scheme: String
    /// The protection realm, for which the server may send any text.
    public let realm: String
    /// The origin of the challenge: scheme, host and port, such as `https://example.org:443`.
    public let origin: String
    /// The number of credentials that this server has rejected during this request.
    public let failureCount: Int
    /// The credential of the URL or the configuration, if it is for this origin and has not been rejected.
    public let proposed: Credential?
    /// The response that requests a credential.
    public let response: Response
  }
}

extension HTTP.Credential {
  /// Whether the credential can be sent in a header.
  var isSendable: Bool { Self.isSendable(user) && Self.isSendable(password) }

  static func isSendable(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }
}

extension HTTP.Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A description without the password.
  public var description: String { "credential of \(user)" }
  /// A description without the password.
  public var debugDescription: String { description }
  /// A mirror without the password.
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}
