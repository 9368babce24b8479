// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// One time for several loops: what time it is, who sleeps until when, and what happens from outside at which time.
///
/// The time moves only while everybody sleeps, to the next date that anybody waits for, and wakes one of those who wait
/// for it: the others of the same date come when that one sleeps again. So call-outs of several threads that are due at
/// one time never run side by side, and come in the same order in every run of a test.
final class Timeline: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  /// Something that happens from outside.
  struct Event {
    let tick: Tick
    let id: UInt64
    let name: String
    let action: @Sendable () -> Void
    /// What is done instead if nobody moves the time any more; nil if nobody waits for the event.
    let giveUp: (@Sendable () -> Void)?
  }

  /// What somebody who would sleep is to do.
  enum Decision {
    /// The time has arrived.
    case due
    /// Something happens from outside meanwhile: to be run on this thread, without a lock, and then asked again.
    case event(@Sendable () -> Void)
    /// Wait until somebody wakes the sleeper; if `isLast`, everybody sleeps and nothing is due.
    case wait(isLast: Bool)
  }

  private let lock = Lock()
  private var time = Tick(nanoseconds: 0)
  private var wall: Int64 = 0
  private var sleepers: [Sleeper] = []
  private var events: [Event] = []
  private var lastEvent: UInt64 = 0
  private var holds = 0
  private var moves = 0
  /// How often anybody came, left, fell asleep or woke, or the time was let go on.
  private var changes = 0
  private var whenNothingIsDue: (@Sendable () -> Void)?
  private var stored: VirtualTimeError?

  /// How long everybody may sleep in real time while nothing is due.
  let realTimeLimit: Duration

  init(realTimeLimit: Duration) { self.realTimeLimit = realTimeLimit }

  var now: Tick { lock.withLock { time } }
  var wallOffset: Int64 { lock.withLock { wall } }
  /// How many times the time was moved.
  var moveCount: Int { lock.withLock { moves } }
  /// How often anybody came, left, fell asleep or woke, or the time was let go on.
  var changeCount: Int { lock.withLock { changes } }
  /// Why the time stands forever.
  var failure: VirtualTimeError? { lock.withLock { stored } }

  func spend(_ duration: Duration) { lock.withLock { time = time + max(0, Int64(saturating: duration)) } }

  func setWallClock(by duration: Duration) { lock.withLock { wall.addSaturating(duration) } }

  func setWhenNothingIsDue(_ action: (@Sendable () -> Void)?) {
    // The one before is released outside the lock.
    var action = action
    lock.withLock { swap(&whenNothingIsDue, &action) }
    wakeOne()
  }
}

// Who takes part.
extension Timeline {
  /// Somebody who sleeps on this time: a loop, or a thread that waits for the loops.
  final class Sleeper: @unchecked Sendable {
    // Sendable: `state` is guarded by the timeline's lock.

    enum State {
      case awake
      case asleep(Sleep)
      case gone
    }

    /// One sleep.
    struct Sleep {
      let deadline: Tick
      /// Whether somebody else is about to end it.
      let isEnding: @Sendable () -> Bool
      let wake: @Sendable () -> Void
    }

    let name: String
    /// Among those of one date, the least comes first.
    let order: Int
    /// Whether it is the thread of the test's body, for which the others wait as long as it computes.
    let isTests: Bool
    fileprivate var state: State = .awake
    /// Whether it is the thread that moves the time.
    var isOwner: Bool { order == .max }

    init(name: String, order: Int, isTests: Bool) {
      self.name = name
      self.order = order
      self.isTests = isTests
    }
  }

  /// Takes part from now on, awake.
  ///
  /// - Parameters:
  ///   - isOwner: Whether it comes after all others of one date. It is the test's then.
  ///   - isTests: Whether it is the thread of the test's body.
  func join(name: String, isOwner: Bool = false, isTests: Bool = false) -> Sleeper {
    lock.withLock {
      let sleeper = Sleeper(name: name, order: isOwner ? .max : sleepers.count, isTests: isOwner || isTests)
      sleepers.append(sleeper)
      changes += 1
      return sleeper
    }
  }

  /// Takes part no more.
  func leave(_ sleeper: Sleeper) {
    lock.withLock {
      sleeper.state = .gone
      changes += 1
    }
    wakeOne()
  }

  /// Lets the time stand until ``release()``.
  func hold() { lock.withLock { holds += 1 } }

  /// Lets the time stand permanently, and ends the sleeps on its clock.
  ///
  /// - Complexity: O(n) in the events that wait.
  func end() {
    let ended = lock.withLock {
      holds += 1
      let sleeps = events.filter { $0.giveUp != nil }
      events.removeAll { $0.giveUp != nil }
      return sleeps
    }
    for sleep in ended { sleep.giveUp?() }
  }

  func release() {
    lock.withLock {
      holds -= 1
      changes += 1
    }
    wakeOne()
  }

  /// Whether there is a thread that moves the time.
  var hasOwner: Bool {
    lock.withLock { sleepers.contains { if case .gone = $0.state { false } else { $0.isOwner } } }
  }

  /// The names of those who take part and are awake.
  var awake: [String] {
    lock.withLock { sleepers.compactMap { if case .awake = $0.state { $0.name } else { nil } } }
  }

  /// Lets all who sleep ask again what is to be done.
  func wakeAll() {
    let wakes = lock.withLock {
      sleepers.compactMap { if case .asleep(let sleep) = $0.state { Optional(sleep.wake) } else { nil } }
    }
    for wake in wakes { wake() }
  }

  /// Lets one of those who sleep ask again what is to be done.
  private func wakeOne() {
    let wake = lock.withLock {
      for sleeper in sleepers { if case .asleep(let sleep) = sleeper.state { return Optional(sleep.wake) } }
      return nil
    }
    wake?()
  }
}

// What happens from outside.
extension Timeline {
  /// Adds an event, behind those of the same time, and returns its number.
  ///
  /// - Parameter giveUp: What is done instead if the time ends before.
  @discardableResult
  func add(
    at tick: Tick, name: String, giveUp: (@Sendable () -> Void)? = nil, _ action: @escaping @Sendable () -> Void
  ) -> UInt64 {
    let id = lock.withLock {
      lastEvent += 1
      let event = Event(tick: tick, id: lastEvent, name: name, action: action, giveUp: giveUp)
      events.insert(event, at: events.firstIndex { $0.tick > tick } ?? events.endIndex)
      return lastEvent
    }
    wakeOne()
    return id
  }

  /// Takes an event out; false if it has happened, or is happening.
  func remove(_ id: UInt64) -> Bool {
    // Released outside the lock.
    let removed = lock.withLock { events.firstIndex { $0.id == id }.map { events.remove(at: $0) } }
    return removed != nil
  }

  var pendingEvents: [Event] { lock.withLock { events } }
}

// Sleeping.
extension Timeline {
  /// Notes that somebody would sleep, and says what is to be done; moves the time if everybody sleeps.
  func fallAsleep(_ sleeper: Sleeper, _ sleep: Sleeper.Sleep) -> Decision {
    let (decision, wake) = lock.withLock { decide(sleeper, sleep) }
    wake?()
    return decision
  }

  /// Notes that somebody sleeps no more.
  func awaken(_ sleeper: Sleeper) {
    lock.withLock {
      guard case .asleep = sleeper.state else { return }
      sleeper.state = .awake
      changes += 1
    }
  }

  private func decide(_ sleeper: Sleeper, _ sleep: Sleeper.Sleep) -> (Decision, (@Sendable () -> Void)?) {
    sleeper.state = .asleep(sleep)
    changes += 1
    guard stored == nil, holds == 0, let first = firstToWake(except: sleeper) else {
      return (.wait(isLast: false), nil)
    }
    if let event = events.first, event.tick <= first.sleep.deadline, time <= first.sleep.deadline {
      events.removeFirst()
      move(to: event.tick)
      sleeper.state = .awake
      return (.event(event.action), nil)
    }
    guard first.sleep.deadline != .never else {
      guard let whenNothingIsDue else { return (.wait(isLast: true), nil) }
      sleeper.state = .awake
      return (.event(whenNothingIsDue), nil)
    }
    move(to: first.sleep.deadline)
    first.sleeper.state = .awake
    return first.sleeper === sleeper ? (.due, nil) : (.wait(isLast: false), first.sleep.wake)
  }

  /// Who comes first of all sleepers; nil if somebody is awake.
  ///
  /// - Parameter asking: The one that asks, who looks for itself whether its sleep is ending.
  private func firstToWake(except asking: Sleeper) -> (sleeper: Sleeper, sleep: Sleeper.Sleep)? {
    var first: (sleeper: Sleeper, sleep: Sleeper.Sleep)?
    for sleeper in sleepers {
      switch sleeper.state {
      case .gone: continue
      case .awake: return nil
      case .asleep(let sleep):
        if sleeper !== asking, sleep.isEnding() { return nil }
        if let before = first, (before.sleep.deadline, before.sleeper.order) <= (sleep.deadline, sleeper.order) {
          continue
        }
        first = (sleeper, sleep)
      }
    }
    return first
  }

  private func move(to tick: Tick) {
    guard tick > time else { return }
    time = tick
    moves += 1
  }

  /// Whether somebody is still the last to sleep, after the limit of real time: then the time stands forever.
  func isStuck(_ sleeper: Sleeper) -> Bool {
    lock.withLock {
      guard stored == nil, holds == 0, events.isEmpty, whenNothingIsDue == nil else { return false }
      return firstToWake(except: sleeper)?.sleep.deadline == .never
    }
  }

  /// The names of those for whom alone the time has waited since a count of changes.
  ///
  /// Nobody is named while the time is to stand, or while the test itself computes.
  func busy(since count: Int) -> [String] {
    lock.withLock {
      guard stored == nil, holds == 0, changes == count else { return [] }
      let awake = sleepers.filter { if case .awake = $0.state { true } else { false } }
      return awake.contains(where: \.isTests) ? [] : awake.map(\.name)
    }
  }

  /// Lets the time stand forever; false if it did already.
  func fail(_ error: VirtualTimeError) -> Bool {
    lock.withLock {
      guard stored == nil else { return false }
      stored = error
      return true
    }
  }

  /// When the next of those who sleep wakes, or the next event happens.
  func nextDeadline(besides sleeper: Sleeper?) -> Tick {
    lock.withLock {
      var next = events.first?.tick ?? .never
      for other in sleepers where other !== sleeper {
        if case .asleep(let sleep) = other.state { next = min(next, sleep.deadline) }
      }
      return next
    }
  }
}
