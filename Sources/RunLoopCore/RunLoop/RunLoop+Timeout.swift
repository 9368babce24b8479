// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The error of an operation that was not over in time.
  public struct TimeoutError: Error, Sendable {
    /// The time that the operation had.
    public let limit: Duration
    /// The error with which the operation ended after it was cancelled, usually a `CancellationError`.
    public let cause: any Error

    /// Makes an error.
    public init(limit: Duration, cause: any Error) {
      self.limit = limit
      self.cause = cause
    }
  }

  /// Runs an operation, and cancels it if it is not over in time.
  ///
  /// ```swift
  /// let reply = try await RunLoop.current.withTimeout(.seconds(5)) { try await connection.ask(question) }
  /// ```
  ///
  /// The time counts by the loop's clock, like that of ``sleep(for:tolerance:in:)``: on a loop whose time a test owns,
  /// nothing waits for it. No timer is left behind when the operation ends first.
  ///
  /// The operation is a child of the calling task, and inherits its priority, its task-local values and its executor
  /// preference; a closure that is written in an actor's code runs on the actor. When the time is over, the operation
  /// is cancelled, and this waits until it has ended: an operation that does not react to its cancellation takes as
  /// long as it takes. What it then returns is late but not lost: it is returned, so that nothing that the operation
  /// has acquired is dropped. If it throws, the error is a ``TimeoutError`` with that error as its cause.
  ///
  /// - Parameters:
  ///   - limit: How long the operation may take. With zero or less, it is cancelled when the loop next runs.
  ///   - tolerance: How much later it may be cancelled, so that several timers can share one wake-up.
  ///   - mode: The mode in which the loop notices that the time is over.
  ///   - isolation: The actor on which this runs, by default the caller's.
  ///   - operation: The work that must end within the limit.
  /// - Returns: The operation's result.
  /// - Throws: ``TimeoutError``, or the operation's error if it ends in time. ``RunLoopError/loopHasEnded`` or
  ///   ``RunLoopError/mainThreadHasLeft`` if the loop has ended, in which case the operation does not begin, or if it
  ///   ends meanwhile, in which case the operation is cancelled and its error dropped.
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
          // The operation has ended, or it is to end now.
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

  /// Why the time of an operation has ended.
  private enum TimeEnd: Equatable, Sendable {
    case over
    case loopHasEnded(RunLoopError)
    /// The operation has ended before, or the caller was cancelled.
    case cancelled
  }
}

extension RunLoop.TimeoutError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "the operation was not over within \(limit.text) and was cancelled: \(cause)" }
}
