// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// Looks before a thread sleeps, and measures its sleeps; for one loop, or for a thread that waits for others.
///
/// A look pays only while the thread that ends the wait runs on another processor: on the same one it cannot run before
/// the look is over. So a looker remembers where the last threads that woke it ran.
package struct Looker: Sendable {
  private(set) var policy: LookPolicy
  private var place = LookPlace.none
  /// The processors of the last two threads that ended a sleep, the last one first; −1 where that is unknown.
  private(set) var wakers: (last: Int32, before: Int32) = (-1, -1)
  /// Whether the current look yields the processor, and does not spin.
  private var yields = false
  /// For how many more waits the place stays as it was.
  private var waitsUntilAsked = 0

  package init() { policy = LookPolicy() }

  /// Makes a looker with a policy and a place that are known.
  init(_ policy: LookPolicy, _ place: LookPlace) {
    self.policy = policy
    self.place = place
    waitsUntilAsked = Looker.waitsBetweenQuestions
  }

  /// After how many waits the system is asked again where the thread may run.
  private static let waitsBetweenQuestions = 1024

  /// Makes the next look ask the system again where the thread may run, because that may have changed.
  package mutating func forgetPlace() {
    place = .none
    waitsUntilAsked = 0
  }

  /// Whether the coming wait is worth the two readings of the clock, which are useless where there can be no look.
  @inline(__always)
  package mutating func measures(_ waiting: RunLoop.Waiting) -> Bool {
    guard waiting.limit > 0 else { return false }
    guard waitsUntilAsked > 0 else { return true }
    waitsUntilAsked -= 1
    return place == .free || (place != .none && manner(waiting, on: crl_processor()) != .none)
  }

  /// Whether the coming wait begins with a look, if the time allows.
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

  /// How a thread that runs on `processor` would look now.
  func manner(_ waiting: RunLoop.Waiting, on processor: Int32) -> Manner {
    let alternative = place != .free && waiting.yields ? Manner.yields : .none
    guard place == .free || place == .pinned else { return place == .none ? .none : alternative }
    guard wakers.last >= 0 else { return place == .free ? .spins : alternative }
    return wakers.last == processor || wakers.before == processor ? alternative : .spins
  }

  /// Notes the processor of the thread that has ended a sleep, or −1 if no thread has, or an unknown one.
  @inline(__always)
  package mutating func noteWaker(_ processor: Int32) {
    if processor >= 0 { wakers = (processor, wakers.last) }
  }

  /// The outcome of a look.
  package enum Outcome {
    /// There was no look: its time was over before it began.
    case none
    case found
    case inVain
  }

  /// Looks until `isOver` says so, for as long as the policy allows.
  ///
  /// - Parameters:
  ///   - poll: Called every few microseconds, because it is a system call; returns true if the wait is over.
  ///   - willLook: Called if there is a look.
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
        // A look that ends because a timer is due was not in vain.
        if length == min(policy.cost, limit) { policy.noteFailure(duration: duration, length: length, at: now) }
        return .inVain
      }
    }
  }

  private static let pollInterval: Int64 = 4_000
  /// How often the word is read between two readings of the clock.
  private static let glances = 8

  /// Notes a sleep that began as a wait at `began` and that another thread has ended, if `waker` is later than that.
  ///
  /// - Parameter isEvent: Whether something happened at an unknown time, because a descriptor became ready.
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
