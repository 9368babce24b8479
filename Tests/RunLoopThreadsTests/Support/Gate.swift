import Glibc
import Synchronization
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

/// An event that has happened or not, for threads that wait for it.
final class Gate: Sendable {
  private let word = Atomic<UInt32>(0)

  var isOpen: Bool { word.load(ordering: .acquiring) == 1 }

  func open() {
    word.store(1, ordering: .releasing)
    word.futexWake(.max)
  }

  /// Waits for the event; the test has failed if it does not come within a time that is always enough.
  func wait(sourceLocation: SourceLocation = #_sourceLocation) {
    let deadline = Tick.after(.seconds(30))
    while !isOpen {
      guard Tick.monotonicNow < deadline else {
        Issue.record("the event has not come", sourceLocation: sourceLocation)
        return
      }
      word.futexWait(while: 0, until: deadline)
    }
  }
}

/// Keeps a thread in one piece of work until it is let go.
final class Hold: Sendable {
  let begun = Gate()
  let released = Gate()

  /// The work.
  func occupy() {
    begun.open()
    released.wait()
  }
}

/// Looks again and again until something is as it should be.
func waitUntil(sourceLocation: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool) rethrows {
  let deadline = Tick.after(.seconds(30))
  while try !condition() {
    guard Tick.monotonicNow < deadline else {
      Issue.record("it has not come about", sourceLocation: sourceLocation)
      return
    }
    sched_yield()
  }
}
