// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// Watches the run loops of this process from a separate thread, and reports call-outs that take too long.
///
/// The thread does not depend on tasks, queues or locks of the program, so it reports even if everything else hangs.
/// It reads the loops' faces, and gets stacks and processor times from the kernel, without sending signals or
/// interrupting system calls. While all loops sleep, it does not wake.
///
/// ```swift
/// let watch = HangWatch(.init(threshold: .milliseconds(250))) { report in
///   print(report.threadName, report.kind ?? "backlog", report.end == nil ? "hangs" : "goes on")
/// }
/// ```
///
/// The watch lasts until the object is released.
public final class HangWatch: Sendable {
  /// Options for a watch: what to watch, and what counts as a hang.
  public struct Configuration: Sendable {
    /// The duration from which a call-out is a hang; the default is 250 milliseconds.
    public var threshold: Duration
    /// Whether to sample the stacks of hanging threads, from half the threshold on; the default is `true`.
    public var sampling: Bool
    /// The waiting time of the oldest post that makes a backlog, if no call-out is long.
    ///
    /// The default is one second; with `nil`, backlogs are not reported.
    public var backlog: Duration?
    /// The loops to watch, which the watch retains; the default is `nil`, which means all loops of the process.
    public var loops: [RunLoop]?
    /// The maximum number of reports per minute.
    ///
    /// The default is 10; the next report counts the hangs that were omitted.
    public var maximumPerMinute: Int
    /// The level that the watch holds.
    ///
    /// The default is ``Instruments/Level/watch``.
    ///
    /// At ``Instruments/Level/record``, reports also contain the called code, the place that posted it, and exact
    /// times.
    public var level: Instruments.Level

    /// Creates a configuration.
    ///
    /// - Parameters:
    ///   - threshold: The duration from which a call-out is a hang, at least one millisecond.
    ///   - sampling: Whether to sample the stacks of hanging threads.
    ///   - backlog: The waiting time of the oldest post that makes a backlog, or nil to ignore backlogs.
    ///   - loops: The loops to watch, or nil for all loops of the process.
    ///   - maximumPerMinute: The maximum number of reports per minute.
    ///   - level: The level that the watch holds, at least ``Instruments/Level/watch``.
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
  /// Whether the watch has a running thread.
  ///
  /// This is false if no thread could be started. The program still runs, but nothing is reported.
  public let isWatching: Bool

  /// Starts watching.
  ///
  /// Check ``isWatching`` to learn whether the thread could be started.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - configuration: The loops to watch, and the thresholds for hangs.
  ///   - report: Called on the watch's thread when a hang is found, while it lasts, and again when it is over, with
  ///     ``HangReport/end`` set. Nothing is watched during the call.
  public init(_ configuration: Configuration = .init(), report: @escaping @Sendable (HangReport) -> Void) {
    core = WatchCore(configuration, report)
    isWatching = core.start()
  }

  /// Starts no further reports; one in progress completes.
  deinit { core.stop() }

  /// Calls a function that is expected to take long and does not count as a hang.
  ///
  /// This applies to the calling thread's loop, for watches in the process and for `runloop hangs`. On a thread
  /// without a loop, it has no effect.
  ///
  /// - Parameters:
  ///   - reason: The reason for the long call, which only documents the code.
  ///   - body: The function.
  /// - Returns: The function's result.
  /// - Throws: The function's error.
  public static func expectLongCall<R>(_ reason: String, _ body: () throws -> R) rethrows -> R {
    let before = crl_expect_long_call(1)
    defer { _ = crl_expect_long_call(before) }
    return try body()
  }
}
