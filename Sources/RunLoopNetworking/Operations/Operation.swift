// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import Synchronization

extension HTTP {
  /// A request that can be started, held, paused, resumed and cancelled; what becomes of it is reported on a loop.
  ///
  /// All its functions can be called from any thread, and hop to the loader's. It ends exactly once. After ``cancel()``
  /// nothing is delivered but the end, which is ``HTTP/Error/Code/cancelled``.
  ///
  /// It has the life of AFNetworking's `AFURLConnectionOperation`.
  public final class Operation: Sendable, Hashable {
    /// What an operation does.
    public enum State: Sendable, Hashable {
      /// It has not been started.
      case ready
      /// The host is looked up, or a time is waited for.
      case resolving
      /// A connection is made or waited for.
      case connecting
      /// The request is sent, or the answer waited for.
      case sending
      /// The body comes.
      case receiving
      /// The body is held: no bytes are taken, and the connection stays.
      case held
      /// The connection has ended, and what came is kept.
      case paused
      /// The body is complete and is being put away.
      case finishing
      /// It has ended.
      case finished
    }

    /// What is asked for.
    public var request: Request { transfer.request }
    private let core: ClientCore
    let receiver: OperationReceiver
    private let transfer: Transfer
    /// Whether the client knows of it.
    private let isKnown = Atomic<Bool>(false)

    init(_ core: ClientCore, _ request: Request, _ output: Output, _ loop: RunLoop, _ modes: [RunLoop.Mode]) {
      var request = request
      if case .file = output, request.headers["Accept-Encoding"] == nil {
        request.headers["Accept-Encoding"] = "identity"
      }
      self.core = core
      receiver = OperationReceiver(output, request.url, core.multiplexer(loop, modes))
      transfer = Transfer(core, request, receiver)
    }

    /// Whether both are the same.
    public static func == (left: Operation, right: Operation) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
  }
}

extension HTTP.Client {
  /// Makes an operation, which the program starts.
  ///
  /// - Parameters:
  ///   - request: What to ask for.
  ///   - output: Where the body of the answer goes.
  ///   - modes: In which modes of the calling thread's loop it reports.
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
  /// What it does.
  ///
  /// A change that another thread asks for takes a moment.
  public var state: State { receiver.state }
  /// Whether it was cancelled.
  public var isCancelled: Bool { transfer.isCancelled.load(ordering: .acquiring) }
  /// How far it has arrived.
  public var progress: HTTP.Progress { receiver.progress }
  /// The head of the answer, once that has arrived.
  public var response: HTTP.Response? { receiver.response }
  /// Whether the loop that it reports on has ended, so that it reports on the loader's thread.
  public var reportsElsewhere: Bool { receiver.multiplexer.loop.hasEnded }

  /// Begins.
  ///
  /// Calling it again, or when it was paused or cancelled before, has no effect.
  public func start() { begin(with: .start) }

  /// Ends the connection and keeps what has arrived.
  ///
  /// Before the start, it waits for ``resume()``.
  public func pause() { if !begin(with: .pause) { transfer.pause() } }

  /// Goes on after a pause.
  ///
  /// What has arrived is continued if the server has the same version of the body, with a strong tag or a date, and
  /// says how long it is; otherwise the request begins afresh.
  public func resume() { transfer.resume() }

  /// Ends with ``HTTP/Error/Code/cancelled``.
  public func cancel() {
    receiver.noteCancelled()
    transfer.isCancelled.store(true, ordering: .releasing)
    if !begin(with: .cancel) { transfer.cancel() }
  }

  /// Takes no more bytes; the connection stays, and the server waits.
  public func hold() { transfer.setHeld(true) }

  /// Takes bytes again.
  public func release() { transfer.setHeld(false) }

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
  /// Calls a block on the operation's loop with the head of the answer; before the start.
  public func onResponse(_ body: @escaping @Sendable (HTTP.Response) -> Void) {
    receiver.setHooks { $0.response = body }
  }

  /// Calls a block on the operation's loop when it has arrived further, at most once in a pass; before the start.
  public func onProgress(_ body: @escaping @Sendable (HTTP.Progress) -> Void) {
    receiver.setHooks { $0.progress = body }
  }

  /// Asks a block what to do with a redirect; before the start.
  ///
  /// It is called by the loader's thread with the request that would be made and the answer that asks for it. It
  /// returns what to ask for, or nil, and then the request ends with ``HTTP/Error/Code/redirectRefused``.
  public func onRedirect(_ body: @escaping @Sendable (HTTP.Request, HTTP.Response) -> HTTP.Request?) {
    receiver.setHooks { $0.redirect = body }
  }

  /// Asks a block for the credential when a server wants one; before the start.
  ///
  /// It is called by the loader's thread each time the server asks by Basic or Digest, unless the request has an
  /// `Authorization` of its own, and returns at once. With nil, the answer 401 is delivered. After ten credentials that
  /// a server has rejected, the request ends with ``HTTP/Error/Code/authenticationFailed``.
  public func onChallenge(_ body: @escaping @Sendable (HTTP.AuthenticationChallenge) -> HTTP.Credential?) {
    receiver.setHooks { $0.challenge = body }
  }

  /// Calls a block on the operation's loop with the cookies that an answer has set, those of redirects included; before
  /// the start.
  ///
  /// Only cookies that the client keeps are reported: see ``HTTP/Configuration/storesCookies``. A cookie whose time is
  /// over was removed.
  public func onCookies(_ body: @escaping @Sendable ([HTTP.Cookie]) -> Void) {
    receiver.setHooks { $0.cookies = body }
  }

  /// How far it has arrived, as it does, until the operation ends.
  ///
  /// Each call makes a sequence, which begins with what is there. A task that takes its time gets the newest value.
  public func progressValues() -> AsyncStream<HTTP.Progress> { receiver.progressValues() }

  /// Calls a block with the end, on the operation's loop and in its modes; if that loop has ended, on the loader's
  /// thread.
  public func onCompletion(_ body: @escaping @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void) {
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

  /// Calls a block on the main actor with the end.
  public func onCompletionOnMainActor(
    _ body: @escaping @MainActor @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void
  ) {
    receiver.whenFinished { outcome in Task { @MainActor in body(outcome) } }
  }

  /// Calls a block with the end on the loader's thread, at once; it must return soon.
  ///
  /// If the end has arrived already, the block is called here.
  public func onCompletionByLoader(
    _ body: @escaping @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void
  ) {
    receiver.whenFinished(body)
  }

  /// Calls a block with the end on an executor.
  public func onCompletion(
    on executor: any TaskExecutor,
    _ body: @escaping @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void
  ) {
    receiver.whenFinished { outcome in Task(executorPreference: executor) { body(outcome) } }
  }

  /// Starts it and waits for its end.
  ///
  /// If the task is cancelled, the operation is. Can be called several times.
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

  /// Starts operations, and calls a block when all of them have ended, in whatever way.
  ///
  /// - Parameters:
  ///   - operations: The operations; with none, the block is called all the same.
  ///   - loop: The loop that calls the block.
  ///   - modes: In which modes it does.
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
