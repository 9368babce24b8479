// SPDX-License-Identifier: Apache-2.0

/// A call-out of a run loop that lasts too long, or posts that wait too long.
///
/// Times are in nanoseconds of the monotonic clock.
public struct HangReport: Sendable, Codable {
  /// The main activity of a thread during a hang.
  public enum Processor: String, Sendable, Codable {
    /// It had a processor.
    case onCPU = "on-cpu"
    /// It could have run, and others had the processors.
    case runnable
    /// It was blocked in the kernel.
    case blocked
    /// It was stopped by a signal or a debugger.
    case stopped
  }

  /// A place from which waiting posts come.
  public struct Site: Sendable, Codable, Hashable {
    /// The place that posted; nil if it is not known.
    public internal(set) var site: CodeAddress?
    /// How many of the posts wait.
    public internal(set) var count: Int
  }

  /// The address of the loop's object.
  public internal(set) var loop: UInt64
  /// The kernel's number of the loop's thread.
  public internal(set) var thread: Int32
  /// The thread's name.
  public internal(set) var threadName: String
  /// The kind of the call-out as `runloop` names it: `block`, `timer`, `source0` and so on; nil for a backlog, and for
  /// a call-out that began before the loop was watched.
  public internal(set) var kind: String?
  /// The function that the loop called; nil unless the loop records.
  public internal(set) var code: CodeAddress?
  /// Where the work was posted from; nil unless the loop records.
  public internal(set) var postedFrom: CodeAddress?
  /// The mode that runs.
  public internal(set) var mode: String?
  /// How many runs are active.
  public internal(set) var depth: Int
  /// When the call-out began; for a backlog, when the oldest waiting post arrived.
  public internal(set) var begin: Int64
  /// Whether it had begun before the loop was looked at first; nil if not.
  ///
  /// Then ``begin`` is the time of that look, and it has lasted longer.
  public internal(set) var isOlder: Bool?
  /// When it ended; nil while it lasts.
  public internal(set) var end: Int64?
  /// The main activity of the thread.
  public internal(set) var processor: Processor
  /// How the thread spent the time since it was first sampled; nil if that could not be read.
  public internal(set) var shares: ProcessorShares?
  /// The system call that it was blocked in.
  public internal(set) var blockedIn: BlockedCall?
  /// The number of the thread that it waits for.
  public internal(set) var waitsFor: Int32?
  /// The name of that thread.
  public internal(set) var waitsForName: String?
  /// The path of calls that most samples share, the innermost address first.
  ///
  /// All addresses except the first are return addresses; the first is of an instruction that ran or called.
  public internal(set) var stack: [CodeAddress]
  /// For each address of the stack, the number of samples that its function was in; nil if that is not known.
  public internal(set) var stackCounts: [Int]?
  /// The number of addresses of the stack that are proved, from the innermost on; nil if that is not known.
  ///
  /// The others are guesses: the registers of a blocked thread are not known, so that some of its frames have to be
  /// searched for.
  public internal(set) var provedFrames: Int?
  /// Why the stack is missing, or has only its innermost address, such as
  /// `perf_event_open: Permission denied (13)`; nil if nothing was rejected.
  public internal(set) var stackProblem: String?
  /// How often the stack was sampled.
  public internal(set) var samples: Int
  /// Whether posts wait too long, though no call-out is long.
  public internal(set) var isBacklog: Bool
  /// For a backlog, the places from which the waiting posts come, the most frequent first; empty unless the loop
  /// records.
  public internal(set) var sites: [Site]
  /// How many hangs before this one were not reported, because there were too many in a minute.
  public internal(set) var leftOut: Int
}
