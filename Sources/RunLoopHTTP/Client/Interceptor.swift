// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// Sees and changes requests and their responses.
  ///
  /// Its functions begin on the loader's thread and go on where the concurrency runtime takes them when they first
  /// wait; until then they must return soon. While they run, the idle timeout does not count, the total timeout does,
  /// and the body of the response waits at the server. When the request is cancelled, paused or out of time, or its
  /// client is stopped at once, the task in which they run is cancelled, the request goes its way without waiting for
  /// them, and their result is ignored.
  public struct Interceptor: Sendable {
    let request: @Sendable (Request) async -> Interception
    let response: (@Sendable (Result<Response, Error>, Request) async -> Review)?

    /// Makes an interceptor.
    ///
    /// - Parameters:
    ///   - request: Called once with each request, before it is sent. After a redirect, a retry or a challenge it is
    ///     not called again.
    ///   - response: Called with the headers of the response that is about to be delivered, or with the reason why
    ///     there is none, and with the request as the interceptors have left it. What another interceptor has answered,
    ///     and what was wrong with the request itself, is not passed on.
    public init(
      request: @escaping @Sendable (Request) async -> Interception = { .proceed($0) },
      response: (@Sendable (Result<Response, Error>, Request) async -> Review)? = nil
    ) {
      self.request = request
      self.response = response
    }
  }

  /// The result of an interceptor for a request.
  public enum Interception: Sendable {
    /// Send this request, the same or a changed one.
    case proceed(Request)
    /// This is the response; nothing is sent, and no library is needed.
    case respond(Response, Body)
    /// The request ends with an error.
    case fail(Error.Code, String)
  }

  /// The result of an interceptor for a response or an error.
  public enum Review: Sendable {
    /// Deliver the response or the error unchanged.
    case proceed
    /// The response has another head, and the same body; for an error it is the same as `proceed`.
    case change(Response)
    /// A request is made in place of this, from the beginning, and is not passed to the interceptors first.
    ///
    /// An error remains if bytes were delivered that cannot be taken back, as those of a ``BodySequence``. After 64
    /// such retries the request ends with ``Error/Code/invalidRequest``.
    case retry(Request, after: Duration = .zero)
    /// This is the response, in place of the server's; the same limit applies as to `retry`.
    case respond(Response, Body)
    /// The request ends with an error.
    case fail(Error.Code, String)
  }
}

extension [HTTP.Interceptor] {
  /// Passes a request through all of them.
  func intercept(_ request: HTTP.Request) async -> HTTP.Interception {
    var request = request
    for interceptor in self {
      let result = await interceptor.request(request)
      guard case .proceed(let changed) = result else { return result }
      request = changed
    }
    return .proceed(request)
  }

  /// Passes what came of a request through all of them, the last first.
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
