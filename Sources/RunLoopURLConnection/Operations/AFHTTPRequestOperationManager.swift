// SPDX-License-Identifier: Apache-2.0

public import Dispatch
public import Foundation
public import FoundationNetworking

/// Makes operations of requests to one server, and starts them in a queue.
///
/// It is AFNetworking 2's class of this name.
open class AFHTTPRequestOperationManager: @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// Called when the request has succeeded, with what the serializer has made of the answer.
  public typealias Success = @Sendable (AFHTTPRequestOperation, Any?) -> Void
  /// Called when it has failed; without an operation if the request could not be made.
  public typealias Failure = @Sendable (AFHTTPRequestOperation?, any Error) -> Void

  /// What the paths of requests are relative to.
  public let baseURL: URL?
  /// Makes the requests; by default parameters are written as those of forms.
  open var requestSerializer: AFHTTPRequestSerializer = AFHTTPRequestSerializer()
  /// Reads the answers; by default they are JSON.
  open var responseSerializer: AFHTTPResponseSerializer = AFJSONResponseSerializer()
  /// Whom the operations trust.
  open var securityPolicy = AFSecurityPolicy.default
  /// Where the operations run.
  open var operationQueue = OperationQueue()
  /// Whether credentials of `URLCredentialStorage` are used.
  open var shouldUseCredentialStorage = true
  /// Who answers servers that ask for a credential.
  open var credential: URLCredential?
  /// The queue of completion blocks; nil: the main queue.
  open var completionQueue: DispatchQueue?
  /// The group that completion blocks are in; nil: none.
  open var completionGroup: DispatchGroup?

  /// Makes a manager.
  public init(baseURL: URL? = nil) {
    // Relative paths would otherwise replace the last part of the address.
    if let baseURL, !baseURL.path.isEmpty, !baseURL.absoluteString.hasSuffix("/") {
      self.baseURL = baseURL.appendingPathComponent("")
    } else {
      self.baseURL = baseURL
    }
  }

  /// Makes an operation of a request, which is not started.
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

  /// Starts a request of the method `GET`.
  ///
  /// - Parameters:
  ///   - urlString: The address, relative to ``baseURL``.
  ///   - parameters: What the request's serializer writes.
  ///   - success: Called by the completion queue.
  ///   - failure: Called by the completion queue.
  /// - Returns: The operation; nil if the request could not be made, and then `failure` is called.
  @discardableResult
  open func get(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("GET", urlString, parameters, success, failure) }

  /// Starts a request of the method `HEAD`; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func head(
    _ urlString: String, parameters: Any?, success: (@Sendable (AFHTTPRequestOperation) -> Void)?, failure: Failure?
  ) -> AFHTTPRequestOperation? {
    begin("HEAD", urlString, parameters, { operation, _ in success?(operation) }, failure)
  }

  /// Starts a request of the method `POST`; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func post(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("POST", urlString, parameters, success, failure) }

  /// Starts a request of the method `POST` with a form of several parts; see ``get(_:parameters:success:failure:)``.
  ///
  /// - Parameters:
  ///   - urlString: The address, relative to ``baseURL``.
  ///   - parameters: The first parts of the form.
  ///   - block: Called before this returns, to add parts.
  ///   - success: Called by the completion queue.
  ///   - failure: Called by the completion queue.
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

  /// Starts a request of the method `PUT`; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func put(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("PUT", urlString, parameters, success, failure) }

  /// Starts a request of the method `PATCH`; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func patch(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("PATCH", urlString, parameters, success, failure) }

  /// Starts a request of the method `DELETE`; see ``get(_:parameters:success:failure:)``.
  @discardableResult
  open func delete(
    _ urlString: String, parameters: Any?, success: Success?, failure: Failure?
  ) -> AFHTTPRequestOperation? { begin("DELETE", urlString, parameters, success, failure) }

  private func absolute(_ path: String) -> String { URL(string: path, relativeTo: baseURL)?.absoluteString ?? path }

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
