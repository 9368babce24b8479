// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Lets the threads of an experiment wait for each other.
///
/// No thread sleeps for a fixed time: each change is announced, and waiting threads check their conditions again. Can
/// be used from any thread.
final class Meeting: @unchecked Sendable {
  // Sendable: `changes` is guarded by the lock.
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let hasChanged: UnsafeMutablePointer<pthread_cond_t>
  private var changes: UInt64 = 0
  // Relaxed: a thread that does not see it yet waits until its own timeout.
  private let isHopeless = Atomic<Bool>(false)
  /// The maximum wait for an event that happens immediately in a successful run.
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

  /// Announces that a condition may have become true.
  func announce() {
    pthread_mutex_lock(lock)
    changes &+= 1
    pthread_cond_broadcast(hasChanged)
    pthread_mutex_unlock(lock)
  }

  /// Waits for a condition whose changes are all announced.
  ///
  /// - Returns: Whether the condition holds. After a timeout, all waits return false immediately.
  @discardableResult
  func wait(until isTrue: () -> Bool) -> Bool { wait(lookingEvery: nil, until: isTrue) }

  /// Waits for a condition whose changes are not all announced, such as that a loop sleeps.
  ///
  /// - Returns: Whether the condition holds. After a timeout, all waits return false immediately.
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

/// A one-time event that threads can wait for; can be used from any thread.
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

  /// Waits for the event; returns false after a timeout.
  @discardableResult
  func wait() -> Bool { meeting.wait { isSet } }
}
