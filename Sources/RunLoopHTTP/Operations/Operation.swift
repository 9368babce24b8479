// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import Synchronization

extension HTTP {
  /// A request that can be started, held, paused, resumed and cancelled, and that reports to a run loop.
  ///
  /// All functions can be called from any thread; the work happens on the loader's thread. An operation ends exactly
  /// once. After ``cancel()`` it reports only its end, with ``HTTP/Error/Code/cancelled``.
  ///
  /// The lifecycle is that of AFNetworking's `AFURLConnectionOperation`.
  public final class Operation: Sendable, IdentityHashable {
    /// The states of an operation.
    public enum State: Sendable, Hashable {
      /// The operation has not been started.
      case ready
      /// The host is being resolved, or the operation is waiting for a delay.
      case resolving
      /// The operation is connecting, or waiting for a connection.
      case connecting
      /// The request is being sent, or the operation is waiting for the response.
      case sending
      /// The body is arriving.
      case receiving
      /// Reading is paused: the connection stays open, but no bytes are read.
      case held
      /// The connection was closed, and the received bytes are kept.
      case paused
      /// The body is complete and is being stored.
      case finishing
      /// The operation has ended.
      case finished
    }

    /// The request to make.
    public var request: Request { transfer.request }
    private let core: ClientCore
    let receiver: OperationReceiver
    private let transfer: Transfer
    /// Whether the operation has been registered with the client.
    private let isKnown = Atomic<Bool>(false)

    init(_ core: ClientCore, _ request: Request, _ output: Output, _ loop: RunLoop, _ modes: [RunLoop.Mode]) {
      var request = request
      if case .file = output { request.asksForFile() }
      self.core = core
      receiver = OperationReceiver(output, request.url, core.multiplexer(loop, modes))
      transfer = Transfer(core, request, receiver)
    }
  }
}

extension HTTP.Client {
  /// Creates an operation, which the program has to start.
  ///
  /// - Parameters:
  ///   - request: The request to make.
  ///   - output: The destination of the response's body.
  ///   - modes: The modes of the calling thread's loop in which the operation reports.
  public func operation(
    _ request: HTTP.Request, output: HTTP.Output = .memory, inModes modes: [RunLoop.Mode] = [.common]
  ) -> HTTP.Operation {
    HTTP.Operation(core, request, output, .current, modes)
  }

  /// Creates an operation that reports to another thread's loop.
  public func operation(
    _ request: HTTP.Request, output: HTTP.Output = .memory, on loop: RunLoop,
    inModes modes: [RunLoop.Mode] = [.common]
  ) -> HTTP.Operation {
    HTTP.Operation(core, request, output, loop, modes)
  }
}

// MARK: - Lifecycle
extension HTTP.Operation {
  /// The state of the operation.
  ///
  /// Changes made from threads other than the loader's take effect asynchronously.
  public var state: State { receiver.state }
  /// Whether the operation was cancelled.
  public var isCancelled: Bool { transfer.isCancelled.load(ordering: .acquiring) }
  /// The progress of the operation.
  public var progress: HTTP.Progress { receiver.progress }
  /// The response's status and headers, once they have arrived.
  public var response: HTTP.Response? { receiver.response }
  /// Whether the operation's loop has ended, so that it reports on the loader's thread instead.
  public var reportsElsewhere: Bool { receiver.multiplexer.loop.hasEnded }

  /// Starts the operation.
  ///
  /// Calling it again, or after the operation was paused or cancelled, has no effect.
  public func start() { begin(with: .start) }

  /// Closes the connection and keeps the bytes that have arrived.
  ///
  /// If it is called before ``start()``, the operation waits for ``resume()``.
  public func pause() { if !begin(with: .pause) { transfer.pause() } }

  /// Resumes a paused operation.
  ///
  /// The download continues from the received bytes if the server has the same version of the body, with a strong
  /// entity tag or a date, and reports its length; otherwise the request starts over.
  public func resume() { transfer.resume() }

  /// Ends the operation with ``HTTP/Error/Code/cancelled``.
  public func cancel() {
    receiver.noteCancelled()
    transfer.isCancelled.store(true, ordering: .releasing)
    if !begin(with: .cancel) { transfer.cancel() }
  }

  /// Stops reading the response's body but keeps the connection open.
  public func pauseReading() { transfer.setHeld(true) }

  /// Resumes reading the response's body.
  public func resumeReading() { transfer.setHeld(false) }

  /// Registers the operation with the client and begins with an event, or returns false if it is already registered.
  @discardableResult
  private func begin(with event: OperationState.Event) -> Bool {
    guard !isKnown.exchange(true, ordering: .acquiringAndReleasing) else { return false }
    if let error = core.begin(transfer, with: event) {
      let error = error.of(url: WebAddress.safeText(of: request.url), bytesReceived: 0)
      receiver.finish(.failure(error), isCallOut: false)
    }
    return true
  }
}

// MARK: - Callbacks
extension HTTP.Operation {
  /// Sets a closure to call on the operation's loop with the response's headers; must be called before the start.
  public func onResponse(_ body: @escaping @Sendable (HTTP.Response) -> Void) {
    receiver.setHooks { $0.response = body }
  }

  /// Sets a closure to call on the operation's loop when progress is made, at most once per pass; must be called
  /// before the start.
  public func onProgress(_ body: @escaping @Sendable (HTTP.Progress) -> Void) {
    receiver.setHooks { $0.progress = body }
  }

  /// Sets a closure that decides about redirects; must be called before the start.
  ///
  /// The closure is called on the loader's thread with the request that would be made and the response that redirects
  /// to it. It returns the request to make. If it returns nil, the operation ends with
  /// ``HTTP/Error/Code/redirectRejected``.
  public func onRedirect(_ body: @escaping @Sendable (HTTP.Request, HTTP.Response) -> HTTP.Request?) {
    receiver.setHooks { $0.redirect = body }
  }

  /// Sets a closure that supplies credentials; must be called before the start.
  ///
  /// The closure is called on the loader's thread, and must not block, each time a server sends a Basic or Digest
  /// challenge, unless the request has its own `Authorization` header. If it returns nil, the 401 response is
  /// delivered. After a server has rejected ten credentials, the operation ends with
  /// ``HTTP/Error/Code/authenticationFailed``.
  public func onChallenge(_ body: @escaping @Sendable (HTTP.AuthenticationChallenge) -> HTTP.Credential?) {
    receiver.setHooks { $0.challenge = body }
  }

  /// Sets a closure to call on the operation's loop with new cookies; must be called before the start.
  ///
  /// Only cookies that the client stores are reported; see ``HTTP/Configuration/storesCookies``. An expired cookie in
  /// the array means that the cookie was removed.
  public func onCookies(_ body: @escaping @Sendable ([HTTP.Cookie]) -> Void) {
    receiver.setHooks { $0.cookies = body }
  }

  /// Returns a sequence of progress values, which finishes when the operation ends.
  ///
  /// Each call creates a sequence that begins with the current value. A slow consumer only receives the newest value.
  public func progressValues() -> AsyncStream<HTTP.Progress> { receiver.progressValues() }

  /// The context in which a completion closure is called.
  public enum CompletionContext: Sendable {
    /// The operation's loop, in its modes; if that loop has ended, the loader's thread.
    case loop
    /// On an executor.
    case executor(any TaskExecutor)
    /// The loader's thread, synchronously. The closure must not block.
    ///
    /// If the operation has already ended, the closure is called on the thread that adds it.
    case immediately
  }

  /// The context in which a main-actor completion closure is called.
  public enum MainActorCompletionContext: Sendable {
    /// On the main actor.
    case mainActor
  }

  /// Calls a closure with the result when the operation ends.
  ///
  /// - Parameters:
  ///   - context: The context in which the closure is called.
  ///   - body: The closure, which is called once.
  public func onCompletion(
    on context: CompletionContext = .loop,
    _ body: @escaping @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void
  ) {
    switch context {
    case .loop: onCompletionInLoop(body)
    case .executor(let executor):
      receiver.whenFinished { outcome in Task(executorPreference: executor) { body(outcome) } }
    case .immediately: receiver.whenFinished(body)
    }
  }

  /// Calls a closure on the main actor with the result when the operation ends.
  public func onCompletion(
    on context: MainActorCompletionContext,
    _ body: @escaping @MainActor @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void
  ) {
    receiver.whenFinished { outcome in Task { @MainActor in body(outcome) } }
  }

  private func onCompletionInLoop(
    _ body: @escaping @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void
  ) {
    let multiplexer = receiver.multiplexer
    receiver.enter()
    receiver.whenFinished { outcome in
      multiplexer.post {
        noteCall(of: OperationReceiver.Completion(call: body))
        body(outcome)
        multiplexer.leave()
      }
    }
  }

  /// Starts the operation and waits for its result.
  ///
  /// Cancelling the task cancels the operation. This method can be called more than once.
  ///
  /// - Throws: Always ``HTTP/Error``.
  public func value() async throws -> (HTTP.Body, HTTP.Response) {
    start()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        receiver.whenFinished { continuation.resume(with: $0.mapError { $0 }) }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Starts several operations and calls a closure when all of them have ended, successfully or not.
  ///
  /// - Parameters:
  ///   - operations: The operations. If the array is empty, only `completion` is called.
  ///   - loop: The loop on which the closures are called.
  ///   - modes: The modes in which the closures are called.
  ///   - progress: Called each time an operation ends, with the number that have ended so far.
  ///   - completion: Called once, after the last call of `progress`.
  public static func batch(
    _ operations: [HTTP.Operation], on loop: RunLoop = .current, inModes modes: [RunLoop.Mode] = [.common],
    progress: (@Sendable (Int) -> Void)? = nil, completion: @escaping @Sendable () -> Void
  ) {
    let multiplexer = MultiplexerSource(loop: loop, modes: modes)
    multiplexer.enter()
    let count = operations.count
    let ended = BatchCount()
    @Sendable func finish() {
      noteCall(of: CalledBody(completion))
      completion()
      multiplexer.leave()
    }
    guard count > 0 else {
      multiplexer.post { finish() }
      return
    }
    for operation in operations {
      operation.receiver.whenFinished { _ in
        multiplexer.post {
          let number = ended.add()
          if let progress {
            noteCall(of: CountHandler(call: progress))
            progress(number)
          }
          if number == count { finish() }
        }
      }
      operation.start()
    }
  }
}

/// Wraps the batch's progress closure in a named type for the call-out records.
private struct CountHandler {
  let call: @Sendable (Int) -> Void
}

/// The number of operations of a batch that have ended.
private final class BatchCount: Sendable {
  private let number = Atomic<Int>(0)

  func add() -> Int { number.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue }
}
