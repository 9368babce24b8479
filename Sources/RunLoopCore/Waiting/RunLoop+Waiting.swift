// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// How the process's loops wait when they have nothing to do.
  ///
  /// It holds for all loops, and for threads that wait for another thread's work. Can be set at any time and from any
  /// thread; by default it is ``Waiting/adaptive``.
  public static var waiting: Waiting {
    get { Waiting(bits: storedWaiting.load(ordering: .relaxed)) }
    set { storedWaiting.store(newValue.bits, ordering: .relaxed) }
  }

  private static let storedWaiting = Atomic<Int64>(Waiting.adaptive.bits)

  /// Whether a loop that has nothing to do sleeps at once, or looks for a moment whether something comes.
  ///
  /// A thread that sleeps has to be woken, which takes a system call and some microseconds, on a virtual processor some
  /// tens of them. If its loop is mostly given something to do sooner than that, it is faster and cheaper not to sleep:
  /// two loops that answer each other on two processors do it some fifty times faster.
  ///
  /// An adaptive wait begins with a look only while at least six of the last eight waits, the last two among them, were
  /// ended by another thread within the time that a sleep and a wake cost here, as measured, and it lasts no longer
  /// than that, nor beyond the next timer. Looks in vain are followed by fewer looks. So a loop that is idle, or has a
  /// timer each millisecond, or a hundred events a second, never looks; ``RunLoop/Statistics/looks`` counts. There is
  /// none on a thread that may run on one processor only, nor under a real-time policy (`SCHED_FIFO`, `SCHED_RR`,
  /// `SCHED_DEADLINE`), nor where a control group limits the process to less time than its processors have, nor in a
  /// loop that waits in another or on virtual time. One that has lost its processor to another thread ends looks for a
  /// second.
  public struct Waiting: Sendable, Hashable {
    /// The longest look in nanoseconds, and the lowest bit for whether a thread on one processor yields it.
    fileprivate let bits: Int64

    fileprivate init(bits: Int64) { self.bits = bits }

    /// Sleep at once, always.
    public static let sleep = Waiting(bits: 0)
    /// Look for at most 50 microseconds while that pays.
    public static let adaptive = adaptive(atMost: .microseconds(50))

    /// Look while that pays.
    ///
    /// - Parameters:
    ///   - bound: How long a look may last, of 50 microseconds at most. Less than a microsecond is none at all.
    ///   - yields: Whether a thread that may run on one processor only looks too and yields the processor meanwhile.
    ///     That is for a machine of one's own: two loops answer each other somewhat faster, but a yield beside a busy
    ///     process can take milliseconds. One that takes longer than a sleep and a wake ends yielding for a second.
    public static func adaptive(atMost bound: Duration = .microseconds(50), yields: Bool = false) -> Waiting {
      let limit = min(50_000, Int64(saturating: bound))
      return limit < 1_000 ? .sleep : Waiting(bits: limit << 1 | (yields ? 1 : 0))
    }

    /// The longest look in nanoseconds; zero: none.
    package var limit: Int64 { bits >> 1 }
    /// Whether a thread on one processor looks and yields.
    var yields: Bool { bits & 1 != 0 }
  }
}
