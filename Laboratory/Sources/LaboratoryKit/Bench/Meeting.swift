// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Where the threads of an experiment wait for each other.
///
/// No thread sleeps for a time here: each change is announced, and a waiting thread looks again. Can be used from any
/// thread.
final class Meeting: @unchecked Sendable {
  // Sendable: `changes` is guarded by the lock.
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let hasChanged: UnsafeMutablePointer<pthread_cond_t>
  private var changes: UInt64 = 0
  // Relaxed: a thread that does not see it yet waits until its own patience is over.
  private let isHopeless = Atomic<Bool>(false)
  /// How long somebody waits for something that happens at once if all is in order.
  let patience: Duration

  init(patience: Duration) {
    self.patience = patience
    lock = .allocate(capacity: 1)
    hasChanged = .allocate(capacity: 1)
    pthread_mutex_init(lock, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(hasChanged, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(hasChanged)
    pthread_mutex_destroy(lock)
    hasChanged.deallocate()
    lock.deallocate()
  }

  /// Says that something may have become true.
  func announce() {
    pthread_mutex_lock(lock)
    changes &+= 1
    pthread_cond_broadcast(hasChanged)
    pthread_mutex_unlock(lock)
  }

  /// Waits until something is true, of which every change is announced.
  ///
  /// - Returns: Whether it is. False once the patience is over, and from then on at once.
  @discardableResult
  func wait(until isTrue: () -> Bool) -> Bool { wait(lookingEvery: nil, until: isTrue) }

  /// Waits until something is true, of which not every change is announced, such as that a loop has gone to sleep.
  ///
  /// - Returns: Whether it is. False once the patience is over, and from then on at once.
  @discardableResult
  func look(until isTrue: () -> Bool) -> Bool { wait(lookingEvery: .milliseconds(1), until: isTrue) }

  private func wait(lookingEvery interval: Duration?, until isTrue: () -> Bool) -> Bool {
    let deadline = ContinuousClock.now + patience
    while true {
      let seen = changeCount
      if isTrue() { return true }
      guard !isHopeless.load(ordering: .relaxed) else { return false }
      let rest = ContinuousClock.now.duration(to: deadline)
      guard rest > .zero else {
        isHopeless.store(true, ordering: .relaxed)
        return false
      }
      waitForChange(since: seen, for: min(rest, interval ?? rest))
    }
  }

  private var changeCount: UInt64 {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return changes
  }

  private func waitForChange(since seen: UInt64, for duration: Duration) {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let (seconds, attoseconds) = duration.components
    let nanoseconds = end.tv_nsec + Int(attoseconds / 1_000_000_000)
    end.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
    end.tv_nsec = nanoseconds % 1_000_000_000
    pthread_mutex_lock(lock)
    while changes == seen, pthread_cond_timedwait(hasChanged, lock, &end) == 0 {}
    pthread_mutex_unlock(lock)
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
