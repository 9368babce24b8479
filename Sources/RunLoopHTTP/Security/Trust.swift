// SPDX-License-Identifier: Apache-2.0

public import RunLoopSockets

extension HTTP {
  /// The servers that a client trusts, and the certificate that it shows.
  public struct Trust: Sendable {
    /// A file of certificates (PEM) that are trusted instead of the system's.
    public var roots: String?
    /// The digests (SHA-256, in base 64) of public keys of which one has to be the server's, or that of an authority
    /// above it; if it is empty, every key of a trusted certificate is accepted.
    ///
    /// Pins are checked even if ``allowsInvalidCertificates`` or ``evaluate`` accepts a certificate; if that is not
    /// trusted otherwise, the server's own key has to be one of them. Without OpenSSL 3, and through a proxy of https,
    /// it always has to.
    public var pins: [String] = []
    /// The oldest version of TLS that is used, with the server and with a proxy of https.
    public var minimumVersion = TLSVersion.tls12
    /// Decides whether a server is trusted, in place of the usual check of its certificates and its name.
    ///
    /// Called by the loader's thread during the handshake; it must return at once. With `false` the request ends with
    /// ``HTTP/Error/Code/untrusted``. It needs a libcurl that encrypts by OpenSSL 3, and direct connections or a proxy
    /// that is not one of https: otherwise every request ends with an error. Connections are not resumed.
    public var evaluate: (@Sendable (ServerTrust) -> Bool)?
    /// What ``evaluate`` decides by: clients with the same text share connections.
    package var evaluationKey: String?
    /// The certificate (PEM, with the certificates that it needs) and the key that the client shows.
    public var certificate: Certificate?
    /// Whether certificates that are not trusted, or are another host's, are accepted: for tests only.
    public var allowsInvalidCertificates = false

    /// The files of a client certificate.
    public struct Certificate: Sendable, Hashable {
      /// The file of the certificate and of the certificates that it needs.
      public var chain: String
      /// The file of its key.
      public var key: String
      /// The password of the key, if it has one.
      public var password: String?

      /// Names the files of a client certificate.
      public init(chain: String, key: String, password: String? = nil) {
        self.chain = chain
        self.key = key
        self.password = password
      }
    }

    /// Makes the usual trust: in everything that the system trusts.
    public init() {}
  }

  /// The proxy that a client uses; its text contains no user and no password.
  public enum Proxy: Sendable, Hashable {
    /// No proxy, whatever the environment sets.
    case none
    /// An address such as `http://user:password@proxy.example:3128`.
    ///
    /// The scheme is `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. The names of hosts are looked up by
    /// the proxy, except with `socks4` and `socks5`.
    case url(String)
    /// The values of the variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` when the client is made.
    case environment
  }
}

extension HTTP.Trust.Certificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A text without the key's password.
  public var description: String { "certificate of \(chain)" }
  /// A text without the key's password.
  public var debugDescription: String { description }
  /// A mirror without the key's password.
  public var customMirror: Mirror { Mirror(self, children: ["chain": chain, "key": key]) }
}

extension HTTP.Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A text without user and password.
  public var description: String {
    switch self {
    case .none: "no proxy"
    case .url(let text): "proxy \(WebAddress.safeText(of: text))"
    case .environment: "the environment's proxy"
    }
  }
  /// A text without user and password.
  public var debugDescription: String { description }
  /// A mirror without user and password.
  public var customMirror: Mirror { Mirror(self, children: ["proxy": description]) }
}
