// SPDX-License-Identifier: Apache-2.0

/// A call-out of a run loop that takes too long, or posts that wait too long.
///
/// Times are in nanoseconds of the monotonic clock.
public struct HangReport: Sendable, Codable {
  /// The state in which a thread spent most of a hang.
  public enum Processor: String, Sendable, Codable {
    /// The thread was running on a processor.
    case onCPU = "on-cpu"
    /// The thread was runnable, but other threads had the processors.
    case runnable
    /// The thread was blocked in the kernel.
    case blocked
    /// The thread was stopped by a signal or a debugger.
    case stopped
  }

  /// A place in the code that posted waiting work.
  public struct Site: Sendable, Codable, Hashable {
    /// The address of the place, or nil if it is unknown.
    public internal(set) var site: CodeAddress?
    /// The number of its waiting posts.
    public internal(set) var count: Int
  }

  /// The address of the loop's object.
  public internal(set) var loop: UInt64
  /// The kernel's ID of the loop's thread.
  public internal(set) var thread: Int32
  /// The name of the thread.
  public internal(set) var threadName: String
  /// The kind of the call-out in the terms of `runloop`, such as `block`, `timer` or `source0`.
  ///
  /// It is `host` for an item of the loop in which this one waits, such as a Foundation timer or a callback of GTK. Nil
  /// for a backlog, and for a call-out that began before the loop was watched.
  public internal(set) var kind: String?
  /// The function that the loop called, or nil unless the loop records.
  public internal(set) var code: CodeAddress?
  /// The place that posted the work, or nil unless the loop records.
  public internal(set) var postedFrom: CodeAddress?
  /// The mode of the current run.
  public internal(set) var mode: String?
  /// The number of nested runs.
  public internal(set) var depth: Int
  /// When the call-out began, or for a backlog, when the oldest waiting post arrived.
  public internal(set) var begin: Int64
  /// Whether the call-out had begun before the first observation of the loop.
  ///
  /// Nil if not.
  ///
  /// In that case, ``begin`` is the time of that observation, and the call-out has lasted longer.
  public internal(set) var isOlder: Bool?
  /// When it ended, or nil while it lasts.
  public internal(set) var end: Int64?
  /// The state in which the thread spent most of the time.
  public internal(set) var processor: Processor
  /// How the thread spent the time since it was first sampled, or nil if that could not be read.
  public internal(set) var shares: ProcessorShares?
  /// The system call in which the thread was blocked.
  public internal(set) var blockedIn: BlockedCall?
  /// The ID of the thread that it waits for.
  public internal(set) var waitsFor: Int32?
  /// The name of that thread.
  public internal(set) var waitsForName: String?
  /// The call path that most samples share, innermost first.
  ///
  /// The first address is the current instruction's; all others are return addresses.
  public internal(set) var stack: [CodeAddress]
  /// The number of samples that contain each function of the stack, or nil if unknown.
  public internal(set) var stackCounts: [Int]?
  /// The number of innermost stack addresses that are proved, or nil if unknown.
  ///
  /// The others are guesses: the registers of a blocked thread are not fully known, so some of its frames must be
  /// searched for.
  public internal(set) var provedFrames: Int?
  /// The reason why the stack is missing or incomplete, such as `perf_event_open: Permission denied (13)`.
  ///
  /// Nil if the stack reaches the loop's run, or the first function of a thread without one.
  public internal(set) var stackProblem: String?
  /// The number of stack samples.
  public internal(set) var samples: Int
  /// Whether this is a backlog: posts have waited too long, although no call-out is long.
  public internal(set) var isBacklog: Bool
  /// For a backlog, the places that posted the waiting work, the most frequent first; empty unless the loop records.
  public internal(set) var sites: [Site]
  /// The number of hangs before this one that were not reported, because the limit per minute was reached.
  public internal(set) var leftOut: Int
}
