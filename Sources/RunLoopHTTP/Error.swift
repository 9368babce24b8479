// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The reason a request failed.
  ///
  /// Every throwing function of the module throws this type.
  public struct Error: Swift.Error, Hashable, Sendable {
    /// The kind of an error.
    public struct Code: Hashable, Sendable {
      /// The code's name, such as `timedOut`.
      public let name: String

      init(_ name: String) { self.name = name }
    }

    /// The kind of the error.
    public let code: Code
    /// The URL of the request, without user, password, query and fragment.
    public let url: String
    /// The number of bytes of the decoded body that had arrived.
    public let bytesReceived: Int64
    /// A human-readable explanation, including libcurl's error code and message if there are any.
    public let detail: String
    /// Every attempt to send the request, if ``HTTP/Configuration/reportsAttempts`` is set; empty by default.
    public internal(set) var attempts: [AttemptReport] = []

    package init(_ code: Code, url: String = "", bytesReceived: Int64 = 0, _ detail: String) {
      self.code = code
      self.url = url
      self.bytesReceived = bytesReceived
      self.detail = detail
    }

    /// Adds the request's URL and progress to the error.
    func of(url: String, bytesReceived: Int64) -> Error {
      Error(code, url: self.url.isEmpty ? url : self.url, bytesReceived: bytesReceived, detail)
    }
  }
}

extension HTTP.Error.Code {
  /// The request was cancelled.
  public static let cancelled = Self("cancelled")
  /// Nothing was sent or received for the idle timeout, or the whole request took too long.
  public static let timedOut = Self("timedOut")
  /// The host name could not be resolved.
  public static let cannotFindHost = Self("cannotFindHost")
  /// No connection to the host became free within ``HTTP/Configuration/connectionWaitTimeout``.
  public static let connectionWaitTimedOut = Self("connectionWaitTimedOut")
  /// No address of the host accepts connections, or the process has run out of descriptors or threads.
  public static let cannotConnect = Self("cannotConnect")
  /// The connection ended before the response was complete.
  public static let connectionLost = Self("connectionLost")
  /// The response is not valid HTTP, or contradicts itself.
  public static let badServerResponse = Self("badServerResponse")
  /// There were more redirects than the configuration allows.
  public static let tooManyRedirects = Self("tooManyRedirects")
  /// A redirect leads to an unsupported scheme, or the program rejected it.
  public static let redirectRejected = Self("redirectRejected")
  /// The server's certificate is not trusted.
  public static let untrusted = Self("untrusted")
  /// The TLS connection could not be established.
  public static let tlsFailed = Self("tlsFailed")
  /// The server requires a client certificate.
  public static let clientCertificateRequired = Self("clientCertificateRequired")
  /// The server's public key is not one of the pinned keys.
  public static let pinMismatch = Self("pinMismatch")
  /// The headers or the body exceed the configured limit.
  public static let tooLarge = Self("tooLarge")
  /// The body's content coding is unknown, or the encoded data is corrupt or truncated.
  public static let cannotDecode = Self("cannotDecode")
  /// The rest of a body does not match the part received earlier.
  public static let resumeMismatch = Self("resumeMismatch")
  /// The server did not accept the credential.
  public static let authenticationFailed = Self("authenticationFailed")
  /// The URL's scheme is not http or https.
  public static let unsupportedURL = Self("unsupportedURL")
  /// The request is invalid, or its body could not be read.
  public static let invalidRequest = Self("invalidRequest")
  /// The proxy could not be used, or it rejected the request.
  public static let proxyFailed = Self("proxyFailed")
  /// The client was stopped, its loop has ended, or it belongs to another process.
  public static let stopped = Self("stopped")
  /// libcurl is missing or unusable.
  public static let noLibrary = Self("noLibrary")
  /// The request allows only a cached response, and the cache has none.
  public static let notInCache = Self("notInCache")
  /// A file could not be read or written.
  public static let fileFailed = Self("fileFailed")
}

extension HTTP.Error.Code: CustomStringConvertible {
  /// The code's name.
  public var description: String { name }
}

extension HTTP.Error: CustomStringConvertible {
  /// A human-readable description, without secrets.
  public var description: String {
    let place = url.isEmpty ? "" : " (\(url))"
    let received = bytesReceived > 0 ? ", after \(bytesReceived) bytes" : ""
    return "\(code)\(place): \(detail)\(received)"
  }
}
