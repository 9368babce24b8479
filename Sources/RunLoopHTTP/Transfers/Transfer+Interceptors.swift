// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The state of a transfer's interceptors, used only on the loader's thread.
final class Interceptions {
  /// The request as modified by the interceptors; nil until they have been called.
  var request: HTTP.Request?
  /// The interceptors' response, until it is delivered.
  var answer: (response: HTTP.Response, body: HTTP.Body)?
  var reviewed: (head: Head, hop: HTTP.Hop, attempt: Attempt)?
  /// Whether to discard the received bytes before the request is made again.
  var startsAfresh = false
  /// The number of calls so far, which identifies late results so that they can be ignored.
  private var number = 0
  private var task: Task<Void, Never>?

  var isAsking: Bool { task != nil }

  /// Calls the interceptors in a task, and passes the result on, on the loader's thread, unless it is too late.
  func ask<Value: Sendable>(
    _ transfer: Transfer, _ body: @escaping @Sendable () async -> Value,
    _ done: @escaping @Sendable (Transfer, Value) -> Void
  ) {
    number += 1
    let number = number
    task = Task.immediate { [weak transfer] in
      let value = await body()
      guard let transfer else { return }
      transfer.core.post {
        guard transfer.interceptions?.take(number) == true else { return }
        transfer.noteActivity()
        done(transfer, value)
        // The deadline was not checked while the interceptors were running.
        transfer.core.note(deadline: transfer.deadline)
      }
    }
  }

  private func take(_ number: Int) -> Bool {
    guard number == self.number, task != nil else { return false }
    task = nil
    return true
  }

  func cancel() {
    task?.cancel()
    (task, reviewed) = (nil, nil)
  }
}

extension Transfer {
  private var hasReviewers: Bool { settings.value.interceptors.contains { $0.response != nil } }

  /// Passes the request to the interceptors before it is sent.
  func intercept() {
    let (interceptors, request) = (configuration.interceptors, request)
    let asking = interceptions ?? Interceptions()
    interceptions = asking
    asking.ask(self) {
      await interceptors.intercept(request)
    } _: { transfer, result in
      switch result {
      case .proceed(let request): transfer.interceptions?.request = request
      case .respond(let response, let body): transfer.interceptions?.answer = (response, body)
      case .fail(let code, let detail): return transfer.apply(.fail(HTTP.Error(code, detail)))
      }
      transfer.goOnTrying()
    }
  }

  /// Passes a response to the interceptors before it is delivered, or returns false if none of them reviews responses.
  func review(_ head: Head, _ hop: HTTP.Hop, _ attempt: Attempt) -> Bool {
    guard let request = interceptions?.request, hasReviewers, !isContinued(head, attempt) else { return false }
    holds.insert(.review)
    interceptions?.reviewed = (head, hop, attempt)
    review(.success(HTTP.Response(head, of: hop)), request) { transfer, changed in
      transfer.goOnReviewed(as: changed)
    }
    return true
  }

  private func goOnReviewed(as changed: HTTP.Response?) {
    guard let (head, hop, attempt) = interceptions?.reviewed else { return }
    interceptions?.reviewed = nil
    holds.remove(.review)
    do throws(HTTP.Error) {
      try begin(head, hop, attempt, as: changed)
    } catch {
      return apply(.fail(error))
    }
    release()
  }

  /// Ends with an error, unless the interceptors decide otherwise.
  func fail(_ error: HTTP.Error) {
    guard let request = interceptions?.request, hasReviewers, state.isRunning, !hasBeenCancelled else {
      return apply(.fail(error))
    }
    drop()
    let url = hop?.address.safeText ?? WebAddress.safeText(of: request.url)
    var told = error.of(url: url, bytesReceived: state.received)
    told.attempts = attempts
    review(.failure(told), request) { transfer, _ in transfer.apply(.fail(error)) }
  }

  private func review(
    _ outcome: Result<HTTP.Response, HTTP.Error>, _ request: HTTP.Request,
    proceed: @escaping @Sendable (Transfer, HTTP.Response?) -> Void
  ) {
    let interceptors = configuration.interceptors
    interceptions?.ask(self) {
      await interceptors.review(outcome, request)
    } _: { transfer, review in
      switch review {
      case .proceed: proceed(transfer, nil)
      case .change(let response): proceed(transfer, response)
      case .fail(let code, let detail): transfer.apply(.fail(HTTP.Error(code, detail)))
      case .retry(let request, let delay):
        guard transfer.canBeginAgain else { return proceed(transfer, nil) }
        transfer.interceptions?.request = request
        transfer.beginAgain(after: delay)
      case .respond(let response, let body):
        guard transfer.canBeginAgain else { return proceed(transfer, nil) }
        transfer.interceptions?.answer = (response, body)
        transfer.beginAgain(after: .zero)
      }
    }
  }

  /// Whether everything delivered so far can be discarded.
  private var canBeginAgain: Bool { response == nil || receiver.canRestart }

  private func beginAgain(after delay: Duration) {
    guard resends.count(where: { $0 == .interceptor }) < Self.mostResends else {
      return apply(.fail(HTTP.Error(.invalidRequest, "interceptors ask for more than \(Self.mostResends) retries")))
    }
    hop = nil
    interceptions?.startsAfresh = true
    resend(.interceptor, after: delay)
  }
}
