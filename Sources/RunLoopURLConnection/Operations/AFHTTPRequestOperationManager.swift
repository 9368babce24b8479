// SPDX-License-Identifier: Apache-2.0

public import Dispatch
public import Foundation
public import FoundationNetworking

/// Creates operations for requests to a server, and starts them in a queue.
///
/// This is the class of the same name in AFNetworking 2.
open class AFHTTPRequestOperationManager: @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// Called when the request has succeeded, with the serializer's result.
  public typealias Success = @Sendable (AFHTTPRequestOperation, Any?) -> Void
  /// Called when the request has failed, without an operation if the request could not be created.
  public typealias Failure = @Sendable (AFHTTPRequestOperation?, any Error) -> Void

  /// The URL that the paths of requests are relative to.
  public let baseURL: URL?
  /// Creates the requests; by default, parameters are form-encoded.
  open var requestSerializer: AFHTTPRequestSerializer = AFHTTPRequestSerializer()
  /// Parses the responses; by default, as JSON.
  open var responseSerializer: AFHTTPResponseSerializer = AFJSONResponseSerializer()
  /// The trust policy of the operations; by default, the default policy.
  open var securityPolicy = AFSecurityPolicy.default
  /// The queue that runs the operations; by default, a queue of the manager's own.
  open var operationQueue = OperationQueue()
  /// Whether credentials of `URLCredentialStorage` are used; the default is `true`.
  open var shouldUseCredentialStorage = true
  /// The credential for servers that request one; the default is nil.
  open var credential: URLCredential?
  /// The queue of completion blocks; nil, the default, means the main queue.
  open var completionQueue: DispatchQueue?
  /// The group of completion blocks; nil, the default, means none.
  open var completionGroup: DispatchGroup?

  /// Creates a manager.
  public init(baseURL: URL? = nil) {
    // Relative paths would otherwise replace the last component of the URL.
    if let baseURL, !baseURL.path.isEmpty, !baseURL.absoluteString.hasSuffix("/") {
      self.baseURL = baseURL.appendingPathComponent("")
    } else {
      self.baseURL = baseURL
    }
  }

  /// Creates an operation for a request without starting it.
  open func httpRequestOperation(
    with request: URLRequest, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation {
    let operation = AFHTTPRequestOperation(request: request)
    operation.responseSerializer = responseSerializer
    operation.shouldUseCredentialStorage = shouldUseCredentialStorage
    operation.credential = credential
    operation.securityPolicy = securityPolicy
    operation.completionQueue = completionQueue
    operation.completionGroup = completionGroup
    operation.setCompletionBlockWithSuccess(success, failure: { failure?($0, $1) })
    return operation
  }

  /// Starts a `GET` request.
  ///
  /// - Parameters:
  ///   - urlString: The URL, relative to ``baseURL``.
  ///   - parameters: The parameters, written by the request serializer.
  ///   - success: Called on the completion queue.
  ///   - failure: Called on the completion queue.
  /// - Returns: The operation; nil if the request could not be created, in which case `failure` is called.
  @discardableResult
  open func get(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("GET", urlString, parameters, success, failure) }

  /// Starts a `HEAD` request; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func head(
    _ urlString: String, parameters: Any?, success: (@Sendable (AFHTTPRequestOperation) -> Void)?, failure: Failure?
  ) -> AFHTTPRequestOperation? {
    begin("HEAD", urlString, parameters, { operation, _ in success?(operation) }, failure)
  }

  /// Starts a `POST` request; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func post(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("POST", urlString, parameters, success, failure) }

  /// Starts a `POST` request with a multipart form; see ``get(_:parameters:success:failure:)``.
  ///
  /// - Parameters:
  ///   - urlString: The URL, relative to ``baseURL``.
  ///   - parameters: The first parts of the form.
  ///   - block: Called before this method returns, to add parts.
  ///   - success: Called on the completion queue.
  ///   - failure: Called on the completion queue.
  @discardableResult
  open func post(
    _ urlString: String, parameters: Any?, constructingBodyWith block: (any AFMultipartFormData) throws -> Void,
    success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? {
    start(success, failure) {
      try requestSerializer.multipartFormRequest(
        withMethod: "POST", urlString: absolute(urlString), parameters: parameters, constructingBodyWith: block)
    }
  }

  /// Starts a `PUT` request; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func put(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("PUT", urlString, parameters, success, failure) }

  /// Starts a `PATCH` request; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func patch(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("PATCH", urlString, parameters, success, failure) }

  /// Starts a `DELETE` request; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func delete(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("DELETE", urlString, parameters, success, failure) }

  private func absolute(_ path: String) -> String {
    (path.isEmpty ? baseURL : URL(string: path, relativeTo: baseURL))?.absoluteString ?? path
  }

  private func begin(
    _ method: String, _ path: String, _ parameters: Any?, _ success: Success?, _ failure: Failure?
  ) -> AFHTTPRequestOperation? {
    start(success, failure) {
      try requestSerializer.request(withMethod: method, urlString: absolute(path), parameters: parameters)
    }
  }

  private func start(
    _ success: Success?, _ failure: Failure?, _ make: () throws -> URLRequest
  ) -> AFHTTPRequestOperation? {
    do {
      let operation = httpRequestOperation(with: try make(), success: success, failure: failure)
      operationQueue.addOperation(operation)
      return operation
    } catch {
      (completionQueue ?? .main).async { failure?(nil, error) }
      return nil
    }
  }
}
