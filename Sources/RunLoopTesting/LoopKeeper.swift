// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The timekeeper of one loop, which is a sleeper on a timeline.
final class LoopKeeper: LoopTimekeeper, @unchecked Sendable {
  // Sendable: the weak references are written before other threads know the loop, and the runtime synchronizes them.
  // The other variables are used only by the loop's thread.

  /// The number of passes without a move of the time after which the loop counts as never sleeping.
  static let mostPasses = 100_000

  let sleeper: Timeline.Sleeper
  weak var loop: RunLoop?
  /// Whether the loop's thread is running an event, which stands in for another thread.
  private(set) var isInEvent = false
  /// The number of call-outs that the loop has made.
  private(set) var callOuts = 0
  private var passes = 0
  /// The real time at which the loop last slept.
  private var awakeSince = Tick.monotonicNow
  private let timeline: Timeline
  private weak var time: VirtualTime?

  init(_ time: VirtualTime, _ sleeper: Timeline.Sleeper) {
    self.time = time
    self.timeline = time.timeline
    self.sleeper = sleeper
  }

  var now: Tick { timeline.now }
  var wallOffset: Int64 { timeline.wallOffset }

  func loopHasEnded() { timeline.leave(sleeper) }

  func sleep(_ sleep: LoopSleep) {
    defer { awakeSince = .monotonicNow }
    while !sleep.isOver, !sleep.look() {
      let decision = timeline.fallAsleep(
        sleeper,
        .init(deadline: sleep.deadline, isEnding: { sleep.isOver || sleep.isReady }, wake: { sleep.wake() }))
      passes = 0
      switch decision {
      case .due: return
      case .event(let action): runEvent(action)
      case .wait(let isLast):
        // The test's thread waits for others only up to the limit; the others wait for the test as long as it
        // computes.
        let limit = isLast || sleeper.isTests ? Tick.after(timeline.realTimeLimit) : .never
        let changes = timeline.changeCount
        sleep.wait(until: limit)
        if Tick.monotonicNow >= limit, !sleep.isOver, !sleep.isReady { giveUp(isLast: isLast, since: changes) }
        timeline.awaken(sleeper)
      }
    }
  }

  /// Runs an event, which stands in for another thread; requires the loop's thread.
  func runEvent(_ action: @Sendable () -> Void) {
    isInEvent = true
    action()
    isInEvent = false
  }

  /// Fails the virtual time if nothing changed while the loop slept for the limit of real time.
  private func giveUp(isLast: Bool, since changes: Int) {
    guard let time else { return }
    let busy = timeline.busy(since: changes)
    if !busy.isEmpty {
      time.fail(.busy(threads: busy, after: timeline.realTimeLimit))
    } else if isLast, timeline.isStuck(sleeper) {
      time.fail(.sleepsIndefinitely(after: timeline.realTimeLimit, awaiting: time.awaited))
    }
  }

  /// Records a trace event of the loop; requires the loop's thread.
  func note(_ event: RunLoop.TraceEvent) {
    switch event.kind {
    case .callOut: callOuts += 1
    case .activity(.beforeTimers):
      passes += 1
      guard passes > Self.mostPasses, let time else { return }
      passes = 0
      time.fail(.neverSleeps(thread: sleeper.name, at: time.elapsed, passes: Self.mostPasses))
    default: break
    }
  }
}

// The sleeps of tasks.
extension LoopKeeper {
  /// Estimates how long a task intended to sleep, given that `rest` is left on a real clock.
  ///
  /// A sleeping task reads a real clock and passes its executor the end of the sleep, so the time between the two
  /// calls is missing. At most, it is the real time since the loop last slept. If that is less than a millisecond,
  /// rounding up to whole milliseconds recovers the duration. If it is more, because the machine is busy or the test
  /// computes, the roundest duration within that range is assumed to be the intended one.
  func duration(ofRealRest rest: Duration) -> Duration {
    let left = Int64(saturating: rest)
    guard left > 0, left < .max / 2 else { return rest }
    let isHere = loop === RunLoop.currentIfMade
    let missing = isHere ? Tick.monotonicNow.nanoseconds - awakeSince.nanoseconds : 0
    return .nanoseconds(Self.meant(left: left, missing: missing))
  }

  /// The intended nanoseconds, given those left and the maximum that may be missing.
  static func meant(left: Int64, missing: Int64) -> Int64 {
    let least = round(left, up: 1_000_000)
    guard missing >= 1_000_000, let unit = units.first(where: { $0 > missing }) else { return least }
    let round = round(left, up: unit)
    return round <= left + missing ? round : least
  }

  private static let units: [Int64] = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000]

  private static func round(_ nanoseconds: Int64, up unit: Int64) -> Int64 { (nanoseconds + unit - 1) / unit * unit }
}
