// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// How the process's loops wait when they have nothing to do.
  ///
  /// The default is ``Waiting/adaptive``. The value applies to all loops, and to threads that wait for another
  /// thread's work. Can be set at any time and from any thread.
  public static var waiting: Waiting {
    get { Waiting(bits: storedWaiting.load(ordering: .relaxed)) }
    set { storedWaiting.store(newValue.bits, ordering: .relaxed) }
  }

  // Relaxed ordering suffices because no other data depends on the value.
  private static let storedWaiting = Atomic<Int64>(Waiting.adaptive.bits)

  /// Whether an idle loop goes to sleep immediately, or first polls briefly for events.
  ///
  /// Waking a sleeping thread takes a system call and several microseconds, or tens of microseconds on a virtual
  /// processor. If a loop usually receives work sooner than that, polling is faster and cheaper than sleeping: two
  /// loops that reply to each other on two processors run about fifty times faster.
  ///
  /// An adaptive wait begins with polling only while at least six of the last eight waits, including the last two,
  /// were ended by another thread within the measured time of a sleep and a wake-up. Polling lasts no longer than
  /// that, and not beyond the next timer. Unsuccessful polling reduces further polling. A loop that is idle, has a
  /// timer every millisecond, or receives a hundred events a second therefore never polls.
  /// ``RunLoop/Statistics/lookCount`` counts the waits that polled.
  ///
  /// A loop does not poll while the threads that wake it run on the processor of its own thread, if its thread has a
  /// real-time policy (`SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`), if a control group limits the process to less time
  /// than its processors have, or if the loop waits in another loop or on virtual time. If another thread takes the
  /// processor during polling, polling is suspended for a second.
  public struct Waiting: Sendable, Hashable {
    /// The polling limit in nanoseconds, shifted left by one; the lowest bit is set if a thread on one processor
    /// yields.
    fileprivate let bits: Int64

    fileprivate init(bits: Int64) { self.bits = bits }

    /// Always sleeps immediately.
    public static let sleep = Waiting(bits: 0)
    /// Polls for at most 50 microseconds while that is worthwhile.
    public static let adaptive = adaptive(atMost: .microseconds(50))

    /// Polls while that is worthwhile.
    ///
    /// - Parameters:
    ///   - bound: The maximum polling time, capped at 50 microseconds, which is the default. Below a microsecond, the
    ///     loop does not poll at all.
    ///   - yields: Whether a thread that is pinned to the processor of the threads that wake it also polls, and yields
    ///     the processor while it does. Defaults to `false`. This is for dedicated machines: two loops that reply to
    ///     each other become somewhat faster, but a yield can take milliseconds if another process is busy. A yield
    ///     that takes longer than a sleep and a wake-up suspends yielding for a second.
    public static func adaptive(atMost bound: Duration = .microseconds(50), yields: Bool = false) -> Waiting {
      let limit = min(50_000, Int64(saturating: bound))
      return limit < 1_000 ? .sleep : Waiting(bits: limit << 1 | (yields ? 1 : 0))
    }

    /// The maximum polling time in nanoseconds, or zero for none.
    package var limit: Int64 { bits >> 1 }
    /// Whether a thread limited to one processor polls and yields.
    var yields: Bool { bits & 1 != 0 }
  }
}
