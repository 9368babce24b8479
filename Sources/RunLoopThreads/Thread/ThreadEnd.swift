import RunLoopCore
import Synchronization

/// The end of a thread, for those who wait for it.
struct ThreadEnd: ~Copyable {
  /// One once it has come.
  private let word = Atomic<UInt32>(0)

  var hasCome: Bool { word.load(ordering: .acquiring) == 1 }

  /// Lets everybody who waits go on.
  borrowing func note() {
    word.store(1, ordering: .releasing)
    word.futexWake(.max)
  }

  /// Sleeps until the end has come, or the deadline; it may return early.
  borrowing func sleep(until deadline: Tick) { word.futexWait(while: 0, until: deadline) }
}
