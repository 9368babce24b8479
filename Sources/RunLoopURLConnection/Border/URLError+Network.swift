// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopHTTP

extension HTTP.Error: LocalizedError {
  /// A description of the error.
  public var errorDescription: String? { description }

  /// The corresponding `URLError`, in `NSURLErrorDomain`.
  ///
  /// Its `userInfo` contains the URL (without user, password, query and fragment), the description, and this error as
  /// the underlying error.
  public var urlError: URLError {
    var userInfo: [String: Any] = [NSLocalizedDescriptionKey: description, NSUnderlyingErrorKey: self]
    if !url.isEmpty {
      // The value of NSURLErrorFailingURLStringErrorKey, which is deprecated but still in use.
      userInfo["NSErrorFailingURLStringKey"] = url
      if let address = URL(string: url) { userInfo[NSURLErrorFailingURLErrorKey] = address }
    }
    return URLError(code.urlErrorCode, userInfo: userInfo)
  }
}

extension HTTP.Error.Code {
  /// The code in `NSURLErrorDomain` that corresponds best.
  public var urlErrorCode: URLError.Code {
    switch self {
    case .cancelled: .cancelled
    case .timedOut, .connectionWaitTimedOut: .timedOut
    case .cannotFindHost: .cannotFindHost
    case .cannotConnect, .proxyFailed: .cannotConnectToHost
    case .connectionLost: .networkConnectionLost
    case .badServerResponse, .resumeMismatch: .badServerResponse
    case .tooManyRedirects: .httpTooManyRedirects
    case .redirectRejected: .redirectToNonExistentLocation
    case .untrusted, .pinMismatch: .serverCertificateUntrusted
    case .tlsFailed: .secureConnectionFailed
    case .clientCertificateRequired: .clientCertificateRequired
    case .tooLarge: .dataLengthExceedsMaximum
    case .cannotDecode: .cannotDecodeContentData
    case .authenticationFailed: .userAuthenticationRequired
    case .unsupportedURL: .unsupportedURL
    case .invalidRequest: .requestBodyStreamExhausted
    case .stopped, .noLibrary: .cannotLoadFromNetwork
    case .fileFailed: .cannotWriteToFile
    case .notInCache: .resourceUnavailable
    default: .unknown
    }
  }
}
