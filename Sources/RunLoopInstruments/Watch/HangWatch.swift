// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// Watches the run loops of this process from a thread of its own, and reports call-outs that last too long.
///
/// The thread is a plain one: it uses no task, no queue and no lock of the program, so that it reports even if
/// everything else hangs. It reads what the loops leave in their faces, and stacks and processor times from the kernel:
/// no thread gets a signal, and no system call is interrupted. While all loops sleep it does not wake.
///
/// ```swift
/// let watch = HangWatch(.init(threshold: .milliseconds(250))) { report in
///   print(report.threadName, report.kind ?? "backlog", report.end == nil ? "hangs" : "goes on")
/// }
/// ```
///
/// The watch lasts as long as its object exists.
public final class HangWatch: Sendable {
  /// What is watched, and what counts as a hang.
  public struct Configuration: Sendable {
    /// How long a call-out must last to be a hang.
    public var threshold: Duration
    /// Whether the stacks of hanging threads are sampled, from half the threshold on.
    public var sampling: Bool
    /// How long the oldest post must wait, without a long call-out, to be a backlog; nil means that backlogs are not
    /// reported.
    public var backlog: Duration?
    /// The loops that are watched, which the watch holds; nil means all loops of the process.
    public var loops: [RunLoop]?
    /// How many hangs are reported in a minute; further hangs are counted in the next report.
    public var maximumPerMinute: Int
    /// The level that the watch holds.
    ///
    /// At ``Instruments/Level/record`` reports also have the code that was called, the place that posted it, and exact
    /// times.
    public var level: Instruments.Level

    /// - Parameters:
    ///   - threshold: How long a call-out must last to be a hang; at least a millisecond.
    ///   - sampling: Whether the stacks of hanging threads are sampled.
    ///   - backlog: How long the oldest post must wait to be a backlog; nil means that backlogs are not reported.
    ///   - loops: The loops that are watched; nil means all loops of the process.
    ///   - maximumPerMinute: How many hangs are reported in a minute.
    ///   - level: The level that the watch holds, ``Instruments/Level/watch`` at least.
    public init(
      threshold: Duration = .milliseconds(250), sampling: Bool = true, backlog: Duration? = .seconds(1),
      loops: [RunLoop]? = nil, maximumPerMinute: Int = 10, level: Instruments.Level = .watch
    ) {
      self.threshold = threshold
      self.sampling = sampling
      self.backlog = backlog
      self.loops = loops
      self.maximumPerMinute = maximumPerMinute
      self.level = level
    }
  }

  private let core: WatchCore
  /// Whether there is a thread that watches.
  ///
  /// It is false if the process could start no thread when the watch was made. A watched program need not end for that,
  /// but nothing is reported.
  public let isWatching: Bool

  /// Begins to watch.
  ///
  /// Can be called from any thread. ``isWatching`` reports whether a thread could be started.
  ///
  /// - Parameters:
  ///   - configuration: What is watched, and what counts as a hang.
  ///   - report: Called on the watch's thread when a hang is found, while it lasts, and once more when it is over:
  ///     ``HangReport/end`` is then set. Nothing is watched while it runs.
  public init(_ configuration: Configuration = .init(), report: @escaping @Sendable (HangReport) -> Void) {
    core = WatchCore(configuration, report)
    isWatching = core.start()
  }

  /// No report begins any more; one that runs goes on.
  deinit { core.stop() }

  /// Calls a function that is expected to take long, which does not count as a hang.
  ///
  /// It holds for the loop of the calling thread, for watches in the process and for `runloop hangs`. On a thread
  /// without a loop the function is just called.
  ///
  /// - Parameters:
  ///   - reason: Why it takes long, for readers of the code.
  ///   - body: The function.
  /// - Returns: The function's result.
  /// - Throws: The function's error.
  public static func expectLongCall<R>(_ reason: String, _ body: () throws -> R) rethrows -> R {
    let before = crl_expect_long_call(1)
    defer { _ = crl_expect_long_call(before) }
    return try body()
  }
}
