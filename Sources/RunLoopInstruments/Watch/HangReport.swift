// SPDX-License-Identifier: Apache-2.0

/// A call-out of a run loop that lasts too long, or posts that wait too long.
///
/// Times are in nanoseconds of the monotonic clock.
public struct HangReport: Sendable, Codable {
  /// What a thread mostly did during a hang.
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

  /// Where waiting posts come from.
  public struct Site: Sendable, Codable, Hashable {
    /// The place that posted; nil if it is not known.
    public var site: CodeAddress?
    /// How many of them wait.
    public var count: Int
  }

  /// The address of the loop's object.
  public var loop: UInt64
  /// The kernel's number of the loop's thread.
  public var thread: Int32
  /// The thread's name.
  public var threadName: String
  /// The kind of the call-out as `runloop` names it: `block`, `timer`, `source0` and so on; nil of a backlog, and of a
  /// call-out that began before anybody looked.
  public var kind: String?
  /// The function that the loop called; nil unless the loop records.
  public var code: CodeAddress?
  /// Where the work was posted from; nil unless the loop records.
  public var postedFrom: CodeAddress?
  /// The mode that runs.
  public var mode: String?
  /// How many runs are active.
  public var depth: Int
  /// When the call-out began; of a backlog, when the oldest waiting post arrived.
  public var begin: Int64
  /// When it was over; nil while it lasts.
  public var end: Int64?
  /// What the thread mostly did.
  public var processor: Processor
  /// How it spent the time since it was first sampled; nil if it could not be asked.
  public var shares: ProcessorShares?
  /// The system call that it was blocked in.
  public var blockedIn: BlockedCall?
  /// The number of the thread that it waits for.
  public var waitsFor: Int32?
  /// The name of that thread.
  public var waitsForName: String?
  /// The stack that was seen most often, the innermost address first.
  ///
  /// All but the first are return addresses.
  public var stack: [CodeAddress]
  /// How often the stack was sampled.
  public var samples: Int
  /// Whether posts wait too long, though no call-out is long.
  public var isBacklog: Bool
  /// Of a backlog, where the waiting posts come from, the most frequent first; empty unless the loop records.
  public var sites: [Site]
  /// How many hangs before this one were not reported, as there were too many in a minute.
  public var leftOut: Int
}
