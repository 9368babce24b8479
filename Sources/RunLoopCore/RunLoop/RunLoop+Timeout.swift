// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The error thrown when an operation exceeds its time limit.
  public struct TimeoutError: Error, Sendable {
    /// The operation's time limit.
    public let limit: Duration
    /// The error with which the cancelled operation ended, usually a `CancellationError`.
    public let cause: any Error

    /// Creates an error.
    public init(limit: Duration, cause: any Error) {
      self.limit = limit
      self.cause = cause
    }
  }

  /// Runs an operation, and cancels it if it exceeds a time limit.
  ///
  /// ```swift
  /// let reply = try await RunLoop.current.withTimeout(.seconds(5)) { try await connection.ask(question) }
  /// ```
  ///
  /// As with ``sleep(for:tolerance:in:)``, the time is measured on the loop's clock: if a test controls the loop's
  /// time, there is no real wait. No timer is left behind if the operation ends first.
  ///
  /// The operation is a child of the calling task, and inherits its priority, task-local values and executor
  /// preference. A closure written in an actor's code runs on that actor. At the time limit, the operation is
  /// cancelled, and the call waits until it has ended, however long an operation that ignores cancellation takes. A
  /// late result is still returned, so that no resource the operation acquired is lost. If the operation throws, the
  /// call throws a ``TimeoutError`` with that error as its cause.
  ///
  /// - Parameters:
  ///   - limit: How long the operation may take. If zero or negative, it is cancelled when the loop next runs.
  ///   - tolerance: How much later it may be cancelled, so that several timers can share one wake-up. Defaults to zero.
  ///   - mode: The mode in which the loop enforces the time limit. Defaults to ``Mode/common``.
  ///   - isolation: The actor on which this runs. Defaults to the caller's.
  ///   - operation: The work to limit.
  /// - Returns: The operation's result.
  /// - Throws: ``TimeoutError``, or the operation's own error if it ends in time. ``RunLoopError/loopHasEnded`` or
  ///   ``RunLoopError/mainThreadHasLeft`` if the loop has ended, in which case the operation does not start, or if the
  ///   loop ends meanwhile, in which case the operation is cancelled and its error is discarded.
  public func withTimeout<Value>(
    _ limit: Duration, tolerance: Duration = .zero, in mode: Mode = .common,
    isolation: isolated (any Actor)? = #isolation, operation: () async throws -> Value
  ) async throws -> Value {
    guard !takesNoItems else { throw endedError }
    return try await withoutActuallyEscaping(operation) { operation in
      let bounded = BoundedOperation(operation)
      var ending: TimeEnd?
      var isOver = false
      await withTaskGroup(of: TimeEnd?.self, isolation: isolation) { group in
        group.addTask {
          await bounded.run()
          return nil
        }
        group.addTask { [self] in
          do {
            try await sleep(for: limit, tolerance: tolerance, in: mode)
            return .over
          } catch let error as RunLoopError {
            return .loopHasEnded(error)
          } catch {
            return .cancelled
          }
        }
        while let event = await group.next() {
          if event == .cancelled { continue }
          // Either the operation has ended, or it must be cancelled now.
          if let event, !isOver { ending = event }
          isOver = true
          group.cancelAll()
        }
      }
      guard let result = bounded.result else { fatalError("an operation with a timeout has ended without a result") }
      guard case .failure(let error) = result, let ending else { return try result.get() }
      switch ending {
      case .over: throw TimeoutError(limit: limit, cause: error)
      case .loopHasEnded(let error): throw error
      case .cancelled: throw error
      }
    }
  }

  /// An operation with a timeout, and its result.
  private final class BoundedOperation<Value>: @unchecked Sendable {
    // Sendable: the caller is suspended until the operation has ended, as in a call. Neither the operation nor its
    // result is ever used by two tasks at once.
    private let operation: () async throws -> Value
    private(set) var result: Result<Value, any Error>?

    init(_ operation: @escaping () async throws -> Value) {
      self.operation = operation
    }

    func run() async {
      do { result = .success(try await operation()) } catch { result = .failure(error) }
    }
  }

  /// The reason why the timing of an operation ended.
  private enum TimeEnd: Equatable, Sendable {
    case over
    case loopHasEnded(RunLoopError)
    /// The operation ended first, or the caller was cancelled.
    case cancelled
  }
}

extension RunLoop.TimeoutError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "the operation was not over within \(limit.text) and was cancelled: \(cause)" }
}
