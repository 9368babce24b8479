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
    /// For which origin it is, such as `https://example.org`; nil means that of each request's own address, not of one
    /// that a redirect leads to.
    public var origin: String?

    /// Makes a credential.
    public init(user: String, password: String, origin: String? = nil) {
      self.user = user
      self.password = password
      self.origin = origin
    }
  }
}

extension HTTP.Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A text without the password.
  public var description: String { "credential of \(user)" }
  /// A text without the password.
  public var debugDescription: String { description }
  /// A mirror without the password.
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}
