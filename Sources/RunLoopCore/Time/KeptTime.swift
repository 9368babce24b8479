// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// Replaces the system's clock for one loop: it provides the time and decides when a sleep is over.
///
/// RunLoopTesting has the timekeepers that tests use, with which several loops share one time.
package protocol LoopTimekeeper: AnyObject, Sendable {
  /// The time by the loop's clock; can be used from any thread.
  var now: Tick { get }
  /// The wall clock's time when the loop's clock is at zero, in nanoseconds since 2001; can be used from any thread.
  var wallOffset: Int64 { get }
  /// Returns when the sleep is over, or earlier, since the loop looks again; called on the loop's thread.
  func sleep(_ sleep: LoopSleep)
  /// Called on the loop's thread when the loop has ended and will not sleep again.
  func loopHasEnded()
  /// How long a task on the loop has to sleep if `rest` is left by a real clock, which has continued since the task
  /// began to sleep.
  ///
  /// Can be called from any thread.
  func duration(ofRealRest rest: Duration) -> Duration
}

/// A sleep that a loop has announced and that its timekeeper performs.
package struct LoopSleep: Sendable {
  package let loop: RunLoop
  /// The date at which the sleep ends if nothing wakes the loop.
  package let deadline: Tick
  fileprivate let asleep: WakeState
  /// The epoll set of the mode, if the mode watches descriptors.
  fileprivate let watched: PollSet?

  /// Whether the loop was woken; can be used from any thread.
  package var isOver: Bool { loop.word.state != asleep }

  /// Whether a watched descriptor is ready; can be used from any thread while the loop sleeps.
  package var isReady: Bool { watched.map { crl_poll_now($0.descriptor.number, Int16(POLLIN)) > 0 } ?? false }

  /// Asks the kernel what is ready, without waiting; returns true if the loop has something to serve.
  ///
  /// Called on the loop's thread.
  package func look() -> Bool {
    watched?.poll() ?? false
  }

  /// Waits until the loop is woken or a descriptor is ready, in real time until a date of the system's monotonic clock.
  ///
  /// It may return early. Called on the loop's thread.
  package func wait(until limit: Tick) {
    guard let set = watched else { return loop.word.sleep(while: asleep, until: limit) }
    set.wait(limit == .never ? nil : max(0, (limit + -Tick.monotonicNow.nanoseconds).nanoseconds))
  }

  /// Makes the loop look again; can be called from any thread.
  package func wake() { loop.post() }
}

/// A waiter that forwards to the loop's timekeeper.
private final class KeptWaiter: Waiter, @unchecked Sendable {
  // Sendable: the loop is set before another thread can use the waiter; the runtime guards weak references.
  let keeper: any LoopTimekeeper
  weak var loop: RunLoop?

  init(_ keeper: any LoopTimekeeper) { self.keeper = keeper }

  var now: Tick { keeper.now }
  var wallOffset: Int64 { keeper.wallOffset }
  func sleeper(watching: Bool) -> WakeState.Sleeper { .virtual }
  func loopHasEnded() { keeper.loopHasEnded() }

  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick, in set: PollSet?) {
    guard let loop else { return }
    keeper.sleep(LoopSleep(loop: loop, deadline: deadline, asleep: asleep, watched: set))
  }
}

extension RunLoop {
  /// Makes a loop with a timekeeper, to be attached to a thread later.
  ///
  /// - Parameter servesMainQueue: Whether the loop serves the main dispatch queue, as only a loop on the main thread
  ///   may.
  package static func make(timekeeper: any LoopTimekeeper, servesMainQueue: Bool = false) -> RunLoop {
    let waiter = KeptWaiter(timekeeper)
    let loop = RunLoop(threadID: 0, waiter: waiter, mainQueueHandle: servesMainQueue ? MainQueue.madeHandle : nil)
    waiter.loop = loop
    return loop
  }

  /// How long a task has to sleep if `rest` is left by a real clock; can be called from any thread.
  package func duration(ofRealRest rest: Duration) -> Duration {
    (waiter as? KeptWaiter)?.keeper.duration(ofRealRest: rest) ?? rest
  }

  /// Whether the loop's time is the system's.
  package var hasSystemTime: Bool { isOnSystemTime }
}

// Functions for the owner of a loop's time, called on the loop's own thread.
extension RunLoop {
  /// Runs a mode until a date of the loop's clock, even while the mode is empty; makes one pass if the date has passed.
  ///
  /// Returns nil without running if the loop's thread is ending.
  package func stay(in mode: Mode, until limit: Tick) -> RunResult? {
    requireOwnThread()
    guard !stopFlag.isEnding else { return nil }
    let now = tickNow
    return enter(
      mode == .common ? .default : mode, for: limit == .never ? .max : (limit + -now.nanoseconds).nanoseconds,
      polls: limit <= now, returnsAfterSource: false, staysWhenEmpty: true)
  }

  /// Whether a pass of a mode would find something to do now.
  ///
  /// It costs a system call if the mode watches descriptors.
  package func hasReadyWork(in name: Mode) -> Bool {
    guard let mode = table.withLock({ $0.modes[name == .common ? .default : name] }) else { return false }
    takeArrivals(exactly: true)
    if hasBlock(mode) || hasDeferredWork(mode) { return true }
    if isServingMainQueue(mode), MainQueue.hasNotice { return true }
    let now = tickNow
    return table.withLock { _ in
      if mustGoOn(mode) || (mode.timerCount > 0 && mode.timers.firstTick <= now) { return true }
      // The next pass polls again and finds the same.
      guard let set = mode.pollSet else { return false }
      set.prepareToWait(servingMainQueue: isServingMainQueue(mode))
      return set.poll()
    }
  }

  /// The date at which the loop would wake for a timer of a mode; can be called from any thread.
  package func nextWake(in name: Mode) -> Tick {
    table.withLock { table in
      guard let mode = table.modes[name == .common ? .default : name], mode.timerCount > 0 else { return .never }
      return mode.timers.wakeTick
    }
  }

  /// The current state of a timer of the loop.
  package struct PendingTimer: Sendable {
    package let mode: Mode
    package let tick: Tick
    package let tolerance: Int64
    package let interval: Int64
  }

  /// The timers of the loop, sorted by mode and then by date.
  ///
  /// Can be used from any thread.
  ///
  /// - Complexity: O(n log n).
  package var pendingTimers: [PendingTimer] {
    table.withLock { table in
      table.modes.values.sorted { $0.name.rawValue < $1.name.rawValue }.flatMap { mode in
        mode.timers.all.map { timer in
          PendingTimer(
            mode: mode.name, tick: timer.tick, tolerance: timer.usableTolerance, interval: timer.interval)
        }
      }
    }
  }
}
