// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopLibC

/// Stops a program in order: a signal, or ``begin()``, has each step end what it stands for, the last one added first,
/// until all have ended or the deadline has passed, and reports what became of each.
///
/// It is an item of a run loop, on which its signals arrive. A step is an asynchronous function that returns when what
/// it stands for has ended, such as a listening socket with its connections, an HTTP client or a thread:
///
/// ```swift
/// let shutdown = try GracefulShutdown { report in exit(report.exitCode) }
/// shutdown.add("client") {
///   client.stop()
///   _ = await client.finished()
/// }
/// ```
///
/// At the ``Options/deadline``, or at a second signal, the steps that run are cancelled, and those that have not begun
/// are all started, cancelled too, so that each can end at once what it stands for. What has not returned within
/// ``Options/cutTime`` is left. Steps run on Swift's own threads, and the deadline is counted on a thread of the
/// library, so that a busy loop does not delay it. Can be used from any thread.
///
/// Other systems have this as `Server.Shutdown` (Go) or a service group (`swift-service-lifecycle`).
public final class GracefulShutdown: Sendable {
  /// How a program stops.
  public struct Options: Sendable {
    /// The signals that begin the shutdown, by default `SIGTERM` and `SIGINT`; the second of them cuts it short.
    public var signals: [Int32] = [SIGTERM, SIGINT]
    /// How long the steps have, together; the default is less than the ten seconds that a container has.
    public var deadline: Duration = .seconds(8)
    /// How long steps that were cancelled have to return.
    public var cutTime: Duration = .seconds(1)

    /// The usual behaviour.
    public init() {}
  }

  /// Why the program stops.
  public enum Cause: Hashable, Sendable {
    /// It was sent this signal.
    case signal(Int32)
    /// ``GracefulShutdown/begin()`` was called.
    case request
  }

  /// What became of a step.
  public enum Outcome: Sendable {
    /// It has returned in time.
    case completed
    /// It has thrown an error.
    case failed(any Error)
    /// It was cancelled, and has returned or thrown an error after that.
    case cut
    /// It was cancelled and has not returned.
    case abandoned
  }

  /// A step that has ended or was left.
  public struct Step: Sendable {
    /// Its name.
    public let name: String
    /// What became of it.
    public let outcome: Outcome
    /// How long it took.
    public let duration: Duration
  }

  typealias Drain = @Sendable () async throws -> Void

  private let signals: [SignalSource]
  private let course: ShutdownCourse

  /// Makes a shutdown that is in no mode; from now on it counts its signals.
  ///
  /// - Parameters:
  ///   - options: How the program stops.
  ///   - handler: Called exactly once with the report, on the thread of a loop that the shutdown is in. If there is no
  ///     such loop, or its thread ends before the call, the handler is called on a thread of the library. It usually
  ///     ends the process, with ``Report/exitCode``.
  /// - Throws: The errors of a ``SignalSource``.
  public init(
    options: Options = Options(), handler: (@Sendable (Report) -> Void)? = nil
  ) throws(SignalError) {
    let course = ShutdownCourse(options, handler)
    self.course = course
    var signals: [SignalSource] = []
    for signal in options.signals {
      signals.append(try SignalSource(signal: signal) { _, event in course.received(signal, count: event.count) })
    }
    self.signals = signals
  }

  /// Adds a step, which runs before those that were added before it; while the program stops, as the next one.
  ///
  /// - Parameters:
  ///   - name: The name in the report.
  ///   - drain: Ends something, and returns when it has ended; it is cancelled when that takes too long.
  /// - Returns: Whether the step was added: false if the shutdown is over. The step then never runs, and the caller has
  ///   to end what it stands for.
  @discardableResult
  public func add(_ name: String, _ drain: @escaping @Sendable () async throws -> Void) -> Bool {
    course.add(name, drain)
  }

  /// Begins the shutdown.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func begin() { course.begin(.request) }

  /// Cancels what is left of the shutdown, as its deadline does; has no effect before ``begin()`` or a signal.
  func cutShort() { course.cut() }

  /// Whether the shutdown has begun.
  public var hasBegun: Bool { course.hasBegun }

  /// Waits for the end of the shutdown, and returns its report.
  public func finished() async -> Report { await course.finished() }
}

extension GracefulShutdown: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// - Throws: The errors of a ``SignalSource``.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    var isThere = true
    for signal in signals { isThere = try signal.respond(to: request) && isThere }
    switch request.act {
    case .add: course.enter(request.loop, request.mode)
    case .remove: course.leave(request.loop, request.mode)
    case .contains: break
    }
    return isThere
  }
}

extension GracefulShutdown {
  /// How a program stopped.
  public struct Report: Sendable {
    /// Why.
    public let cause: Cause
    /// The signal that cut it short, if one did.
    let cuttingSignal: Int32?
    /// The steps, in the order in which they ended.
    public let steps: [Step]
    /// How long it took.
    public let duration: Duration

    /// Whether each step has completed.
    public var isComplete: Bool {
      steps.allSatisfy { if case .completed = $0.outcome { true } else { false } }
    }

    /// The code to exit with: 0 if each step has completed; or else 128 and the number of the signal that cut it short,
    /// as shells have it, or 1.
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
