// SPDX-License-Identifier: Apache-2.0

public import RunLoopSockets

extension HTTP {
  /// The servers that a client trusts, and its own certificate.
  public struct Trust: Sendable {
    /// A PEM file of trusted certificates that replaces the system's; the default is nil.
    public var roots: String?
    /// Digests (SHA-256 in base64) of accepted public keys, one of which has to belong to the server or to an issuer
    /// above it; empty by default, which accepts every key of a trusted certificate.
    ///
    /// Pins are checked even if ``allowsInvalidCertificates`` or ``evaluate`` accepts a certificate. If the
    /// certificate is not trusted otherwise, the server's own key has to match. The same applies to all certificates
    /// without OpenSSL 3, and through an HTTPS proxy.
    public var pins: [String] = []
    /// The lowest TLS version to accept, also from an HTTPS proxy; the default is TLS 1.2.
    public var minimumVersion = TLSVersion.tls12
    /// A closure that decides whether to trust a server, instead of the standard verification; the default is nil.
    ///
    /// It is called on the loader's thread during the handshake and must not block. If it returns `false`, the request
    /// ends with ``HTTP/Error/Code/untrusted``. It needs a libcurl built with OpenSSL 3; otherwise, or through an
    /// HTTPS proxy, every request fails. TLS sessions are not resumed.
    public var evaluate: (@Sendable (ServerTrust) -> Bool)?
    /// A key for the policy of ``evaluate``, which clients need to have in common to share connections.
    package var evaluationKey: String?
    /// The client's certificate and private key; the default is nil.
    public var certificate: Certificate?
    /// Whether to accept certificates that are untrusted or for another host, for tests only; the default is `false`.
    public var allowsInvalidCertificates = false

    /// The files of a client certificate.
    public struct Certificate: Sendable, Hashable {
      /// The PEM file with the certificate and its intermediate certificates.
      public var chain: String
      /// The file with the private key.
      public var key: String
      /// The password of the private key; nil if it has none.
      public var password: String?

      /// Creates a client certificate from its files.
      public init(chain: String, key: String, password: String? = nil) {
        self.chain = chain
        self.key = key
        self.password = password
      }
    }

    /// Creates the default policy, which trusts everything that the system trusts.
    public init() {}
  }

  /// The proxy that a client uses, whose description contains neither user nor password.
  public enum Proxy: Sendable, Hashable {
    /// No proxy, regardless of the environment.
    case none
    /// A URL such as `http://user:password@proxy.example:3128`.
    ///
    /// The scheme is `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. Host names are resolved by the
    /// proxy, except with `socks4` and `socks5`.
    case url(String)
    /// The proxies in `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` when the client is created.
    case environment
  }
}

extension HTTP.Trust.Certificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A description without the key's password.
  public var description: String { "certificate of \(chain)" }
  /// A description without the key's password.
  public var debugDescription: String { description }
  /// A mirror without the key's password.
  public var customMirror: Mirror { Mirror(self, children: ["chain": chain, "key": key]) }
}

extension HTTP.Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// A description without user and password.
  public var description: String {
    switch self {
    case .none: "no proxy"
    case .url(let text): "proxy \(WebAddress.safeText(of: text))"
    case .environment: "the environment's proxy"
    }
  }
  /// A description without user and password.
  public var debugDescription: String { description }
  /// A mirror without user and password.
  public var customMirror: Mirror { Mirror(self, children: ["proxy": description]) }
}
