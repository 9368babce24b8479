// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// Inspects and modifies requests and their responses.
  ///
  /// The functions start on the loader's thread and must not block it. After their first suspension they resume
  /// wherever the concurrency runtime schedules them. While they run, the idle timeout is suspended but the total
  /// timeout is not, and the body of the response is not read from the server. If the request is cancelled, paused or
  /// timed out, or its client is stopped immediately, the task that runs them is cancelled, the request proceeds
  /// without waiting for them, and their result is ignored.
  public struct Interceptor: Sendable {
    let request: @Sendable (Request) async -> Interception
    let response: (@Sendable (Result<Response, Error>, Request) async -> Review)?

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - request: Called once with each request before it is sent. It is not called again after a redirect, a retry
    ///     or a challenge.
    ///   - response: Called with the headers of the response about to be delivered, or with the error, and with the
    ///     request as modified by the interceptors. It is not called for responses that an interceptor supplied, nor
    ///     for errors in the request itself.
    public init(
      request: @escaping @Sendable (Request) async -> Interception = { .proceed($0) },
      response: (@Sendable (Result<Response, Error>, Request) async -> Review)? = nil
    ) {
      self.request = request
      self.response = response
    }
  }

  /// The decision of an interceptor about a request.
  public enum Interception: Sendable {
    /// Send this request, which may be modified.
    case proceed(Request)
    /// Use this response. Nothing is sent, and libcurl is not needed.
    case respond(Response, Body)
    /// Fail the request with this error.
    case fail(Error.Code, String)
  }

  /// The decision of an interceptor about a response or an error.
  public enum Review: Sendable {
    /// Deliver the response or the error unchanged.
    case proceed
    /// Replace the response's status and headers but keep its body. For an error, this is the same as `proceed`.
    case change(Response)
    /// Make this request from the start instead, without passing it to the request interceptors.
    ///
    /// If bytes have been delivered that cannot be taken back, such as those of a ``BodySequence``, the original
    /// error is kept. After 64 such retries the request ends with ``Error/Code/invalidRequest``.
    case retry(Request, after: Duration = .zero)
    /// Use this response instead of the server's. The same restrictions apply as for `retry`.
    case respond(Response, Body)
    /// Fail the request with this error.
    case fail(Error.Code, String)
  }
}

extension [HTTP.Interceptor] {
  func intercept(_ request: HTTP.Request) async -> HTTP.Interception {
    var request = request
    for interceptor in self {
      let result = await interceptor.request(request)
      guard case .proceed(let changed) = result else { return result }
      request = changed
    }
    return .proceed(request)
  }

  /// Passes the outcome of a request through all interceptors in reverse order.
  func review(_ outcome: Result<HTTP.Response, HTTP.Error>, _ request: HTTP.Request) async -> HTTP.Review {
    var (outcome, review) = (outcome, HTTP.Review.proceed)
    for interceptor in reversed() {
      switch await interceptor.response?(outcome, request) ?? .proceed {
      case .proceed: break
      case .change(let response):
        guard case .success = outcome else { break }
        outcome = .success(response)
        review = .change(response)
      case let last: return last
      }
    }
    return review
  }
}
