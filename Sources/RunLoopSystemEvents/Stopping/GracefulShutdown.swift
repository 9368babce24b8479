// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopLibC

/// Shuts a program down in order, by running steps until all have completed or the deadline has passed.
///
/// The shutdown begins with a signal or with ``begin()`` and runs the steps in reverse order of their addition. Its
/// report contains the outcome of each. It is a run loop item, and its signals arrive on the loops that it was added
/// to. A step is an asynchronous function that stops something, such as a listening socket with its connections, an
/// HTTP client or a thread, and returns when that has ended:
///
/// ```swift
/// let shutdown = try GracefulShutdown { report in exit(report.exitCode) }
/// shutdown.add("client") {
///   client.stop()
///   _ = await client.finished()
/// }
/// ```
///
/// At the ``Options/deadline``, or at a second signal, the running step is cancelled, and all remaining steps are
/// started and cancelled too, so that each can stop at once. Steps that have not returned within ``Options/cutTime``
/// are abandoned. Steps run on Swift's own threads, and the deadline is measured on a thread of this library, so that
/// a busy loop does not delay it. Can be used from any thread.
///
/// Similar facilities are `Server.Shutdown` in Go and service groups in `swift-service-lifecycle`.
public final class GracefulShutdown: Sendable {
  /// The configuration of a shutdown.
  public struct Options: Sendable {
    /// The signals that begin the shutdown, `SIGTERM` and `SIGINT` by default; a second one cuts it short.
    public var signals: [Int32] = [SIGTERM, SIGINT]
    /// The time limit for all steps together; the default is 8 seconds, less than the 10 seconds that a container has.
    public var deadline: Duration = .seconds(8)
    /// The time that cancelled steps have to return; the default is 1 second.
    public var cutTime: Duration = .seconds(1)

    /// Creates the default options.
    public init() {}
  }

  /// The reason for the shutdown.
  public enum Cause: Hashable, Sendable {
    /// This signal was received.
    case signal(Int32)
    /// ``GracefulShutdown/begin()`` was called.
    case request
  }

  /// The outcome of a step.
  public enum Outcome: Sendable {
    /// The step has returned in time.
    case completed
    /// The step has thrown an error.
    case failed(any Error)
    /// The step was cancelled, and has then returned or thrown an error.
    case cut
    /// The step was cancelled and has not returned.
    case abandoned
  }

  /// A step that has ended or was abandoned.
  public struct Step: Sendable {
    /// The step's name.
    public let name: String
    /// The outcome of the step.
    public let outcome: Outcome
    /// The duration of the step.
    public let duration: Duration
  }

  typealias Drain = @Sendable () async throws -> Void

  private let signals: [SignalSource]
  private let course: ShutdownCourse

  /// Creates a shutdown that is in no mode and starts counting its signals.
  ///
  /// - Parameters:
  ///   - options: The configuration of the shutdown.
  ///   - handler: Called exactly once with the report, on the thread of a loop that the shutdown is in. If there is no
  ///     such loop, or its thread ends before the call, the handler is called on a thread of this library. It usually
  ///     exits the process with ``Report/exitCode``.
  /// - Throws: The errors of a ``SignalSource``.
  public init(
    options: Options = Options(), handler: (@Sendable (Report) -> Void)? = nil
  ) throws(SignalError) {
    let course = ShutdownCourse(options, handler)
    self.course = course
    var signals: [SignalSource] = []
    // A signal that is listed twice would count as a second one.
    for signal in Set(options.signals) {
      signals.append(try SignalSource(signal: signal) { _, event in course.received(signal, count: event.count) })
    }
    self.signals = signals
  }

  /// Adds a step, which runs before those that were added earlier, or next if the shutdown has begun.
  ///
  /// - Parameters:
  ///   - name: The name in the report.
  ///   - drain: Stops something, and returns when that has ended. It is cancelled if that takes too long.
  /// - Returns: Whether the step was added. False if the shutdown is over; the step will not run, and the caller has
  ///   to do its work.
  @discardableResult
  public func add(_ name: String, _ drain: @escaping @Sendable () async throws -> Void) -> Bool {
    course.add(name, drain)
  }

  /// Begins the shutdown.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func begin() { course.begin(.request) }

  /// Cancels the remaining steps, as the deadline does; has no effect before the shutdown has begun.
  func cutShort() { course.cut() }

  /// Whether the shutdown has begun.
  public var hasBegun: Bool { course.hasBegun }

  /// Waits for the end of the shutdown, and returns its report.
  public func finished() async -> Report { await course.finished() }
}

extension GracefulShutdown: RunLoopItem {
  /// Adds the shutdown to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// - Throws: The errors of a ``SignalSource``. Then the mode has none of the shutdown's signals.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    var isThere = true
    for (index, signal) in signals.enumerated() {
      do throws(RunLoopError) {
        isThere = try signal.respond(to: request) && isThere
      } catch {
        for added in signals[..<index] { request.loop.remove(added, forMode: request.mode) }
        throw error
      }
    }
    switch request.act {
    case .add: course.enter(request.loop, request.mode)
    case .remove: course.leave(request.loop, request.mode)
    case .contains: break
    }
    return isThere
  }
}

extension GracefulShutdown {
  /// The report of a shutdown.
  public struct Report: Sendable {
    /// The reason for the shutdown.
    public let cause: Cause
    /// The signal that cut the shutdown short, if there was one.
    let cuttingSignal: Int32?
    /// The steps, in the order in which they ended.
    public let steps: [Step]
    /// The duration of the shutdown.
    public let duration: Duration

    /// Whether all steps have completed.
    public var isComplete: Bool {
      steps.allSatisfy { if case .completed = $0.outcome { true } else { false } }
    }

    /// The exit code: 0 if all steps have completed; otherwise 128 plus the number of the signal that cut the shutdown
    /// short, as in shells, or 1.
    public var exitCode: Int32 { isComplete ? 0 : cuttingSignal.map { 128 + $0 } ?? 1 }
  }
}

extension GracefulShutdown.Outcome: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .completed: "completed"
    case .failed(let error): "failed: \(error)"
    case .cut: "cut short"
    case .abandoned: "abandoned"
    }
  }
}

extension GracefulShutdown.Report: CustomStringConvertible {
  /// The report in one line, for a log.
  public var description: String {
    let why = if case .signal(let signal) = cause { "signal \(signal)" } else { "request" }
    let milliseconds = duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
    let steps = steps.map { "\($0.name) \($0.outcome)" }.joined(separator: ", ")
    return "stopped by \(why) in \(milliseconds) ms: \(steps.isEmpty ? "nothing to end" : steps)"
  }
}
