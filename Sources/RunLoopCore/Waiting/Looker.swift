// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// Polls before a thread sleeps, and measures the sleeps, for one loop or for a thread that waits for others.
///
/// Polling pays off only if the thread that ends the wait runs on another processor. On the same one, it cannot run
/// until the polling is over. So a looker remembers the processors of the last threads that woke it.
package struct Looker: Sendable {
  private(set) var policy: LookPolicy
  private var place = LookPlace.none
  /// The processors of the last two threads that ended a sleep, the latest one first; −1 if unknown.
  private(set) var wakers: (last: Int32, before: Int32) = (-1, -1)
  /// Whether the current polling yields the processor instead of spinning.
  private var yields = false
  /// The number of further waits before the place is queried again.
  private var waitsUntilAsked = 0

  package init() { policy = LookPolicy() }

  /// Creates a looker with a known policy and place.
  init(_ policy: LookPolicy, _ place: LookPlace) {
    self.policy = policy
    self.place = place
    waitsUntilAsked = Looker.waitsBetweenQuestions
  }

  /// The number of waits after which the system is queried again for the thread's processors.
  private static let waitsBetweenQuestions = 1024

  /// Makes the next poll query the thread's processors again, because they may have changed.
  package mutating func forgetPlace() {
    place = .none
    waitsUntilAsked = 0
  }

  /// Returns whether to measure the next wait, which costs two clock readings and is useless if the thread cannot poll.
  @inline(__always)
  package mutating func measures(_ waiting: RunLoop.Waiting) -> Bool {
    guard waiting.limit > 0 else { return false }
    guard waitsUntilAsked > 0 else { return true }
    waitsUntilAsked -= 1
    return place == .free || (place != .none && manner(waiting, on: crl_processor()) != .none)
  }

  /// Returns whether the next wait begins with polling, if the time allows.
  @inline(__always)
  package mutating func isDue(_ waiting: RunLoop.Waiting) -> Bool {
    guard waiting.limit > 0, policy.isDue else { return false }
    if waitsUntilAsked == 0 {
      place = LookPlace.ask()
      waitsUntilAsked = Looker.waitsBetweenQuestions
    }
    let manner = manner(waiting, on: crl_processor())
    guard manner != .none else { return false }
    yields = manner == .yields
    waitsUntilAsked -= 1
    return true
  }

  enum Manner { case none, spins, yields }

  /// Returns the manner in which a thread on `processor` would poll now.
  func manner(_ waiting: RunLoop.Waiting, on processor: Int32) -> Manner {
    let alternative = place != .free && waiting.yields ? Manner.yields : .none
    guard place == .free || place == .pinned else { return place == .none ? .none : alternative }
    guard wakers.last >= 0 else { return place == .free ? .spins : alternative }
    return wakers.last == processor || wakers.before == processor ? alternative : .spins
  }

  /// Records the processor of the thread that ended a sleep, or −1 if it is unknown or no thread did.
  @inline(__always)
  package mutating func noteWaker(_ processor: Int32) {
    if processor >= 0 { wakers = (processor, wakers.last) }
  }

  /// The outcome of polling.
  package enum Outcome {
    /// The thread did not poll, because its time was over before it began.
    case none
    case found
    case inVain
  }

  /// Polls until `isOver` returns true, for as long as the policy allows.
  ///
  /// - Parameters:
  ///   - poll: Called only every few microseconds, because it makes a system call; returns true if the wait is over.
  ///   - willLook: Called before polling begins, if it does.
  package mutating func look(
    from began: Tick, until deadline: Tick, limit: Int64, isOver: () -> Bool, poll: () -> Bool = { false },
    willLook: () -> Void = {}
  ) -> Outcome {
    let length = policy.length(at: began, until: deadline, limit: limit)
    guard length > 0 else { return .none }
    willLook()
    var now = began
    var nextPoll = began + Looker.pollInterval
    while true {
      for _ in 0..<Looker.glances {
        guard !isOver() else {
          policy.noteSuccess()
          return .found
        }
        if yields { break }
        crl_spin_hint()
      }
      if yields { crl_yield() }
      let before = now
      now = SystemWaiter.now
      if yields, (now + -before.nanoseconds).nanoseconds > policy.cost { policy.takeRest(at: now) }
      if now >= nextPoll {
        if poll() {
          policy.noteSuccess()
          return .found
        }
        nextPoll = now + Looker.pollInterval
      }
      let duration = (now + -began.nanoseconds).nanoseconds
      guard duration < length else {
        // Polling that ended because a timer is due is not a failure.
        if length == min(policy.cost, limit) { policy.noteFailure(duration: duration, length: length, at: now) }
        return .inVain
      }
    }
  }

  private static let pollInterval: Int64 = 4_000
  /// The number of times that the word is read between two readings of the clock.
  private static let glances = 8

  /// Records a sleep in a wait that began at `began`; a `waker` with an earlier time belongs to an earlier wait.
  ///
  /// - Parameter isEvent: Whether a descriptor that became ready, at an unknown time, ended the sleep.
  package mutating func noteSleep(from began: Tick, endedBy waker: Waker, isEvent: Bool, limit: Int64) {
    let now = SystemWaiter.now
    if waker.time >= began, waker.time <= now {
      noteWaker(waker.processor)
      policy.noteSleep(
        idle: (waker.time + -began.nanoseconds).nanoseconds, latency: (now + -waker.time.nanoseconds).nanoseconds,
        limit: limit)
    } else {
      let idle = (now + -began.nanoseconds).nanoseconds - policy.cost
      policy.noteSleep(idle: isEvent ? max(0, idle) : nil, latency: nil, limit: limit)
    }
  }
}
