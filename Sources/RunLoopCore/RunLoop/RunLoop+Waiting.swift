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

  // Relaxed: the value is all that is read of it.
  private static let storedWaiting = Atomic<Int64>(Waiting.adaptive.bits)

  /// Whether a loop that has nothing to do sleeps at once, or first looks briefly whether there is something to do.
  ///
  /// A thread that sleeps has to be woken, which takes a system call and some microseconds, and on a virtual processor
  /// some tens of them. If its loop usually gets something to do sooner than that, it is faster and cheaper not to
  /// sleep: two loops that answer each other on two processors are some fifty times faster.
  ///
  /// An adaptive wait begins with a look only while at least six of the last eight waits, including the last two, were
  /// ended by another thread within the measured time of a sleep and a wake. A look lasts no longer than that, nor
  /// beyond the next timer. Looks in vain are followed by fewer looks. So a loop that is idle, or has a timer each
  /// millisecond, or a hundred events a second, never looks; ``RunLoop/Statistics/lookCount`` counts the looks.
  /// There is no look while the threads that wake the loop run on the processor of the loop's thread, under a real-time
  /// policy (`SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`), where a control group limits the process to less time than
  /// its processors have, or in a loop that waits in another or on virtual time. A look that has lost its processor to
  /// another thread ends looks for a second.
  public struct Waiting: Sendable, Hashable {
    /// The longest look in nanoseconds, and the lowest bit for whether a thread on one processor yields it.
    fileprivate let bits: Int64

    fileprivate init(bits: Int64) { self.bits = bits }

    /// Always sleeps at once.
    public static let sleep = Waiting(bits: 0)
    /// Looks for at most 50 microseconds while that pays.
    public static let adaptive = adaptive(atMost: .microseconds(50))

    /// Looks while that pays.
    ///
    /// - Parameters:
    ///   - bound: How long a look may last, at most 50 microseconds. Less than a microsecond means no look at all.
    ///   - yields: Whether a thread that is pinned to the processor of the threads that wake it also looks, and yields
    ///     the processor meanwhile. The default is `false`. This is for a dedicated machine: two loops answer each
    ///     other somewhat faster, but a yield beside a busy process can take milliseconds. A yield that takes longer
    ///     than a sleep and a wake ends yielding for a second.
    public static func adaptive(atMost bound: Duration = .microseconds(50), yields: Bool = false) -> Waiting {
      let limit = min(50_000, Int64(saturating: bound))
      return limit < 1_000 ? .sleep : Waiting(bits: limit << 1 | (yields ? 1 : 0))
    }

    /// The longest look in nanoseconds; zero for none.
    package var limit: Int64 { bits >> 1 }
    /// Whether a thread on one processor looks and yields.
    var yields: Bool { bits & 1 != 0 }
  }
}
