// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The reason why a request has no answer.
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
    /// The address of the request, without user, password, query and fragment.
    public let url: String
    /// How many bytes of the decoded body had arrived.
    public let bytesReceived: Int64
    /// The cause in words, for a person; with libcurl's number and text if there are any.
    public let detail: String
    /// Each time the request was sent, if ``HTTP/Configuration/reportsAttempts`` asks for it.
    public internal(set) var attempts: [AttemptReport] = []

    package init(_ code: Code, url: String = "", bytesReceived: Int64 = 0, _ detail: String) {
      self.code = code
      self.url = url
      self.bytesReceived = bytesReceived
      self.detail = detail
    }

    /// The same with what is known of the request.
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
  /// The host's name has no address.
  public static let cannotFindHost = Self("cannotFindHost")
  /// No connection to the host became free within ``HTTP/Configuration/connectionWaitTimeout``.
  public static let connectionWaitTimedOut = Self("connectionWaitTimedOut")
  /// No address of the host takes a connection, or the system has no descriptor or thread left for one.
  public static let cannotConnect = Self("cannotConnect")
  /// The connection ended before the answer did.
  public static let connectionLost = Self("connectionLost")
  /// The answer is not HTTP, or contradicts itself.
  public static let badServerResponse = Self("badServerResponse")
  /// There were more redirects than the configuration allows.
  public static let tooManyRedirects = Self("tooManyRedirects")
  /// A redirect leads to a scheme that is not followed, or the program rejected it.
  public static let redirectRejected = Self("redirectRejected")
  /// The server's certificate is not trusted.
  public static let untrusted = Self("untrusted")
  /// The encrypted connection could not be made.
  public static let tlsFailed = Self("tlsFailed")
  /// The server requires a client certificate.
  public static let clientCertificateRequired = Self("clientCertificateRequired")
  /// The server's public key is not one of the pinned keys.
  public static let pinMismatch = Self("pinMismatch")
  /// The head or the body is longer than the configuration allows.
  public static let tooLarge = Self("tooLarge")
  /// The body's content coding is unknown, broken or cut short.
  public static let cannotDecode = Self("cannotDecode")
  /// The rest of a body does not continue what was received before.
  public static let resumeMismatch = Self("resumeMismatch")
  /// The server did not accept the credential.
  public static let authenticationFailed = Self("authenticationFailed")
  /// The address is not one of http or https.
  public static let unsupportedURL = Self("unsupportedURL")
  /// The request cannot be sent as it is, or its body could not be read.
  public static let invalidRequest = Self("invalidRequest")
  /// The proxy could not be used, or rejected the request.
  public static let proxyFailed = Self("proxyFailed")
  /// The client was stopped, its loop has ended, or it belongs to another process.
  public static let stopped = Self("stopped")
  /// libcurl is missing or unusable.
  public static let noLibrary = Self("noLibrary")
  /// The request may be answered from a cache alone, which has no response.
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
