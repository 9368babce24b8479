// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The time shared by several loops, with their sleepers and the scheduled events.
///
/// The time moves only while every sleeper sleeps. It moves to the next deadline and wakes one of the sleepers waiting
/// for it; others with the same deadline wake when that one sleeps again. Call-outs of several threads that are due at
/// the same time therefore never run concurrently, and run in the same order every time.
final class Timeline: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  /// An action from outside the loops, at a given time.
  struct Event {
    let tick: Tick
    let id: UInt64
    let name: String
    let action: @Sendable () -> Void
    /// Called instead if the time ends before the event; nil if no code waits for the event.
    let giveUp: (@Sendable () -> Void)?
  }

  /// The next step for a thread that is about to sleep.
  enum Decision {
    /// The deadline has been reached.
    case due
    /// Run this action on the calling thread without the lock, and then ask again.
    case event(@Sendable () -> Void)
    /// Wait to be woken; `isLast` is true if every sleeper sleeps and nothing is due.
    case wait(isLast: Bool)
  }

  private let lock = Lock()
  private var time = Tick(nanoseconds: 0)
  private var wall: Int64 = 0
  private var sleepers: [Sleeper] = []
  private var events: [Event] = []
  private var lastEvent: UInt64 = 0
  private var holds = 0
  /// Incremented when a sleeper joins, leaves, falls asleep or wakes, or when a hold is released.
  private var changes = 0
  private var whenNothingIsDue: (@Sendable () -> Void)?
  private var stored: VirtualTimeError?

  /// The maximum real time for which all sleepers may sleep while nothing is due.
  let realTimeLimit: Duration

  init(realTimeLimit: Duration) { self.realTimeLimit = realTimeLimit }

  var now: Tick { lock.withLock { time } }
  var wallOffset: Int64 { lock.withLock { wall } }
  /// The number of changes of the sleepers and holds.
  var changeCount: Int { lock.withLock { changes } }
  /// The error that stopped the time permanently, if any.
  var failure: VirtualTimeError? { lock.withLock { stored } }

  func spend(_ duration: Duration) { lock.withLock { time = time + max(0, Int64(saturating: duration)) } }

  func setWallClock(by duration: Duration) { lock.withLock { wall.addSaturating(duration) } }

  func setWhenNothingIsDue(_ action: (@Sendable () -> Void)?) {
    // The previous closure is released after unlocking.
    var action = action
    lock.withLock { swap(&whenNothingIsDue, &action) }
    wakeOne()
  }
}

// Sleepers.
extension Timeline {
  /// A participant that sleeps on this time: a loop, or a thread that waits for the loops.
  final class Sleeper: @unchecked Sendable {
    // Sendable: `state` is guarded by the timeline's lock.

    enum State {
      case awake
      case asleep(Sleep)
      case gone
    }

    /// A single sleep.
    struct Sleep {
      let deadline: Tick
      /// Returns whether another thread is about to end the sleep.
      let isEnding: @Sendable () -> Bool
      let wake: @Sendable () -> Void
    }

    let name: String
    /// The rank among sleepers with the same deadline; the smallest wakes first.
    let order: Int
    /// Whether this is the thread of the test's body, for which the others wait while it computes.
    let isTests: Bool
    fileprivate var state: State = .awake
    /// Whether this is the thread that moves the time.
    var isOwner: Bool { order == .max }

    init(name: String, order: Int, isTests: Bool) {
      self.name = name
      self.order = order
      self.isTests = isTests
    }
  }

  /// Adds a sleeper, which is initially awake.
  ///
  /// - Parameters:
  ///   - isOwner: Whether it wakes after all others with the same deadline; implies `isTests`.
  ///   - isTests: Whether it is the thread of the test's body.
  func join(name: String, isOwner: Bool = false, isTests: Bool = false) -> Sleeper {
    lock.withLock {
      let sleeper = Sleeper(name: name, order: isOwner ? .max : sleepers.count, isTests: isOwner || isTests)
      sleepers.append(sleeper)
      changes += 1
      return sleeper
    }
  }

  /// Removes a sleeper.
  func leave(_ sleeper: Sleeper) {
    lock.withLock {
      sleeper.state = .gone
      changes += 1
    }
    wakeOne()
  }

  /// Holds the time until ``release()``.
  func hold() { lock.withLock { holds += 1 } }

  /// Holds the time permanently, and ends the sleeps on its clock.
  ///
  /// - Complexity: O(n) in the number of pending events.
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

  /// Whether a thread is registered that moves the time.
  var hasOwner: Bool {
    lock.withLock { sleepers.contains { if case .gone = $0.state { false } else { $0.isOwner } } }
  }

  /// The names of the sleepers that are awake.
  var awake: [String] {
    lock.withLock { sleepers.compactMap { if case .awake = $0.state { $0.name } else { nil } } }
  }

  /// Wakes all sleepers, so that each asks for its next step.
  func wakeAll() {
    let wakes = lock.withLock {
      sleepers.compactMap { if case .asleep(let sleep) = $0.state { Optional(sleep.wake) } else { nil } }
    }
    for wake in wakes { wake() }
  }

  /// Wakes one sleeper, so that it asks for its next step.
  private func wakeOne() {
    let wake = lock.withLock {
      for sleeper in sleepers { if case .asleep(let sleep) = sleeper.state { return Optional(sleep.wake) } }
      return nil
    }
    wake?()
  }
}

// Events from outside the loops.
extension Timeline {
  /// Adds an event after those of the same time, and returns its number.
  ///
  /// - Parameter giveUp: Called instead if the time ends first.
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

  /// Removes an event; returns false if it has run or is running.
  func remove(_ id: UInt64) -> Bool {
    // Released after unlocking.
    let removed = lock.withLock { events.firstIndex { $0.id == id }.map { events.remove(at: $0) } }
    return removed != nil
  }

  var pendingEvents: [Event] { lock.withLock { events } }
}

// Sleeping.
extension Timeline {
  /// Records that a thread is about to sleep and returns its next step; moves the time if every sleeper sleeps.
  func fallAsleep(_ sleeper: Sleeper, _ sleep: Sleeper.Sleep) -> Decision {
    let (decision, wake) = lock.withLock { decide(sleeper, sleep) }
    wake?()
    return decision
  }

  /// Records that a sleeper is awake.
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

  /// The sleeper that wakes first, or nil if any sleeper is awake.
  ///
  /// - Parameter asking: The sleeper that asks, which checks for itself whether its sleep is ending.
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
  }

  /// Whether the sleeper is still the last one asleep after the limit of real time.
  func isStuck(_ sleeper: Sleeper) -> Bool {
    lock.withLock {
      guard stored == nil, holds == 0, events.isEmpty, whenNothingIsDue == nil else { return false }
      return firstToWake(except: sleeper)?.sleep.deadline == .never
    }
  }

  /// The names of the threads that alone have held up the time since `changeCount` had a value.
  ///
  /// Empty while the time is held or the test itself computes.
  func busy(since count: Int) -> [String] {
    lock.withLock {
      guard stored == nil, holds == 0, changes == count else { return [] }
      let awake = sleepers.filter { if case .awake = $0.state { true } else { false } }
      return awake.contains(where: \.isTests) ? [] : awake.map(\.name)
    }
  }

  /// Stops the time permanently; returns false if it was already stopped.
  func fail(_ error: VirtualTimeError) -> Bool {
    lock.withLock {
      guard stored == nil else { return false }
      stored = error
      return true
    }
  }

  /// The date of the next wake-up of another sleeper or of the next event.
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
