// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// Where the threads of an experiment wait for each other.
///
/// Nobody sleeps for a time here: whoever changes something announces it, and whoever waits looks again. Any thread.
final class Meeting: Sendable {
  private let changes = Atomic<UInt32>(0)
  // Relaxed: a thread that does not see it yet waits until its own patience is over.
  private let isHopeless = Atomic<Bool>(false)
  /// How long somebody waits for something that happens at once if all is in order.
  let patience: Duration

  init(patience: Duration) {
    self.patience = patience
  }

  /// Says that something may have become true.
  func announce() {
    changes.wrappingAdd(1, ordering: .acquiringAndReleasing)
    changes.futexWake(.max)
  }

  /// Waits until something is true.
  ///
  /// - Returns: Whether it is. False once the patience is over, and from then on at once.
  @discardableResult
  func wait(until isTrue: () -> Bool) -> Bool {
    let deadline = Tick.after(patience)
    while true {
      let seen = changes.load(ordering: .acquiring)
      if isTrue() { return true }
      guard !isHopeless.load(ordering: .relaxed) else { return false }
      guard Tick.monotonicNow < deadline else {
        isHopeless.store(true, ordering: .relaxed)
        return false
      }
      changes.futexWait(while: seen, until: deadline)
    }
  }
}

/// Something that happens once, for which threads may wait.
///
/// Any thread.
final class Flag: Sendable {
  private let isRaised = Atomic<Bool>(false)
  private let meeting: Meeting

  init(_ meeting: Meeting) {
    self.meeting = meeting
  }

  var isSet: Bool { isRaised.load(ordering: .acquiring) }

  func set() {
    isRaised.store(true, ordering: .releasing)
    meeting.announce()
  }

  /// Waits until it has happened; false if it does not.
  @discardableResult
  func wait() -> Bool { meeting.wait { isSet } }
}
