// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import Synchronization

extension HTTP {
  /// A request that can be started, held, paused, resumed and cancelled; its progress and end are reported on a loop.
  ///
  /// All its functions can be called from any thread, and hop to the loader's. It ends exactly once. After ``cancel()``
  /// only the end is delivered, which is ``HTTP/Error/Code/cancelled``.
  ///
  /// Its lifecycle is that of AFNetworking's `AFURLConnectionOperation`.
  public final class Operation: Sendable, IdentityHashable {
    /// The states of an operation.
    public enum State: Sendable, Hashable {
      /// It has not been started.
      case ready
      /// The host is being looked up, or the operation waits for a time.
      case resolving
      /// A connection is being made, or waited for.
      case connecting
      /// The request is being sent, or the answer is waited for.
      case sending
      /// The body is arriving.
      case receiving
      /// The body is held: no bytes are taken, and the connection stays.
      case held
      /// The connection has ended, and the received bytes are kept.
      case paused
      /// The body is complete and is being stored.
      case finishing
      /// It has ended.
      case finished
    }

    /// The request to make.
    public var request: Request { transfer.request }
    private let core: ClientCore
    let receiver: OperationReceiver
    private let transfer: Transfer
    /// Whether the client knows of it.
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
  /// Makes an operation, which the program starts.
  ///
  /// - Parameters:
  ///   - request: The request to make.
  ///   - output: Where the body of the answer goes.
  ///   - modes: The modes of the calling thread's loop in which it reports.
  public func operation(
    _ request: HTTP.Request, output: HTTP.Output = .memory, inModes modes: [RunLoop.Mode] = [.common]
  ) -> HTTP.Operation {
    HTTP.Operation(core, request, output, .current, modes)
  }

  /// Makes an operation that reports on another thread's loop.
  public func operation(
    _ request: HTTP.Request, output: HTTP.Output = .memory, on loop: RunLoop,
    inModes modes: [RunLoop.Mode] = [.common]
  ) -> HTTP.Operation {
    HTTP.Operation(core, request, output, loop, modes)
  }
}

// Its life.
extension HTTP.Operation {
  /// The state of the operation.
  ///
  /// A change that another thread requests takes a moment.
  public var state: State { receiver.state }
  /// Whether it was cancelled.
  public var isCancelled: Bool { transfer.isCancelled.load(ordering: .acquiring) }
  /// The progress of the operation.
  public var progress: HTTP.Progress { receiver.progress }
  /// The head of the answer, once that has arrived.
  public var response: HTTP.Response? { receiver.response }
  /// Whether the loop that it reports on has ended, so that it reports on the loader's thread.
  public var reportsElsewhere: Bool { receiver.multiplexer.loop.hasEnded }

  /// Starts the operation.
  ///
  /// Calling it again, or after it was paused or cancelled, has no effect.
  public func start() { begin(with: .start) }

  /// Ends the connection and keeps the bytes that have arrived.
  ///
  /// If it is called before the start, the operation waits for ``resume()``.
  public func pause() { if !begin(with: .pause) { transfer.pause() } }

  /// Goes on after a pause.
  ///
  /// The received bytes are continued if the server has the same version of the body, with a strong tag or a date, and
  /// reports its length; otherwise the request begins afresh.
  public func resume() { transfer.resume() }

  /// Ends the operation with ``HTTP/Error/Code/cancelled``.
  public func cancel() {
    receiver.noteCancelled()
    transfer.isCancelled.store(true, ordering: .releasing)
    if !begin(with: .cancel) { transfer.cancel() }
  }

  /// Takes no more bytes; the connection stays open, and the server waits.
  public func pauseReading() { transfer.setHeld(true) }

  /// Takes bytes again.
  public func resumeReading() { transfer.setHeld(false) }

  /// Lets the client know of it; false if it does.
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

// What it reports.
extension HTTP.Operation {
  /// Calls a block on the operation's loop with the head of the answer; to be called before the start.
  public func onResponse(_ body: @escaping @Sendable (HTTP.Response) -> Void) {
    receiver.setHooks { $0.response = body }
  }

  /// Calls a block on the operation's loop when more has arrived, at most once in a pass; to be called before the
  /// start.
  public func onProgress(_ body: @escaping @Sendable (HTTP.Progress) -> Void) {
    receiver.setHooks { $0.progress = body }
  }

  /// Asks a block what to do with a redirect; to be called before the start.
  ///
  /// The loader's thread calls the block with the request that would be made and the answer that asks for it. The block
  /// returns the request to make, or nil; then the request ends with ``HTTP/Error/Code/redirectRejected``.
  public func onRedirect(_ body: @escaping @Sendable (HTTP.Request, HTTP.Response) -> HTTP.Request?) {
    receiver.setHooks { $0.redirect = body }
  }

  /// Asks a block for the credential when a server requires one; to be called before the start.
  ///
  /// The loader's thread calls the block each time the server asks by Basic or Digest, unless the request has an
  /// `Authorization` of its own; the block must return at once. With nil, the answer 401 is delivered. After ten
  /// credentials that a server has rejected, the request ends with ``HTTP/Error/Code/authenticationFailed``.
  public func onChallenge(_ body: @escaping @Sendable (HTTP.AuthenticationChallenge) -> HTTP.Credential?) {
    receiver.setHooks { $0.challenge = body }
  }

  /// Calls a block on the operation's loop with the cookies that an answer has set, including those of redirects; to be
  /// called before the start.
  ///
  /// Only cookies that the client keeps are reported: see ``HTTP/Configuration/storesCookies``. A reported cookie whose
  /// time is over was removed.
  public func onCookies(_ body: @escaping @Sendable ([HTTP.Cookie]) -> Void) {
    receiver.setHooks { $0.cookies = body }
  }

  /// The progress as it changes, until the operation ends.
  ///
  /// Each call makes a sequence, which begins with the current value. A slow task gets the newest value.
  public func progressValues() -> AsyncStream<HTTP.Progress> { receiver.progressValues() }

  /// Where a completion block is called.
  public enum CompletionContext: Sendable {
    /// On the operation's loop and in its modes; if that loop has ended, on the loader's thread.
    case loop
    /// On an executor.
    case executor(any TaskExecutor)
    /// On the loader's thread, at once; the block must return soon.
    ///
    /// If the operation has ended already, the block is called by the thread that adds it.
    case immediately
  }

  /// Where a completion block of the main actor is called.
  public enum MainActorCompletionContext: Sendable {
    /// On the main actor.
    case mainActor
  }

  /// Calls a block with the result.
  ///
  /// - Parameters:
  ///   - context: Where the block is called.
  ///   - body: The block, which is called once.
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

  /// Calls a block on the main actor with the result.
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
    multiplexer.enter()
    receiver.whenFinished { outcome in
      multiplexer.post {
        noteCall(of: OperationReceiver.Completion(call: body))
        body(outcome)
        multiplexer.leave()
      }
    }
  }

  /// Starts the operation and waits for its end.
  ///
  /// If the task is cancelled, the operation is cancelled. Can be called several times.
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

  /// Starts operations, and calls a block when all of them have ended, no matter how.
  ///
  /// - Parameters:
  ///   - operations: The operations; with none, the block is called all the same.
  ///   - loop: The loop that calls the block.
  ///   - modes: The modes in which the loop calls the block.
  ///   - progress: Called by the loop after each end, with how many have ended.
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

/// What is called with how many have ended, so that a record names it.
private struct CountHandler {
  let call: @Sendable (Int) -> Void
}

/// How many operations of a batch have ended.
private final class BatchCount: Sendable {
  private let number = Atomic<Int>(0)

  func add() -> Int { number.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue }
}
