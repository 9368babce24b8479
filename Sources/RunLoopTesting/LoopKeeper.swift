// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Keeps the time of one loop, as one of those who sleep on a timeline.
final class LoopKeeper: LoopTimekeeper, @unchecked Sendable {
  // Sendable: the weak references are written before anybody else knows the loop, and the runtime guards them; the
  // other variables belong to the loop's thread.

  /// After how many passes at one time the loop is said never to sleep.
  static let mostPasses = 100_000

  let sleeper: Timeline.Sleeper
  weak var loop: RunLoop?
  /// Whether the loop's thread runs something that stands for another thread.
  private(set) var isInEvent = false
  /// How many call-outs the loop has made.
  private(set) var callOuts = 0
  private var passes = 0
  /// When the loop last slept, by the system's clock.
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
        // The test waits only so long for other threads; they wait for the test as long as it computes.
        let limit = isLast || sleeper.isTests ? Tick.after(timeline.realTimeLimit) : .never
        let changes = timeline.changeCount
        sleep.wait(until: limit)
        if Tick.monotonicNow >= limit, !sleep.isOver, !sleep.isReady { giveUp(isLast: isLast, since: changes) }
        timeline.awaken(sleeper)
      }
    }
  }

  /// Runs something that stands for another thread.
  ///
  /// The loop's thread.
  func runEvent(_ action: @Sendable () -> Void) {
    isInEvent = true
    action()
    isInEvent = false
  }

  /// Lets the time stand forever if nothing has changed while the loop slept for the limit of real time.
  private func giveUp(isLast: Bool, since changes: Int) {
    guard let time else { return }
    let busy = timeline.busy(since: changes)
    if !busy.isEmpty {
      time.fail(.busy(threads: busy, after: timeline.realTimeLimit))
    } else if isLast, timeline.isStuck(sleeper) {
      time.fail(.sleepsIndefinitely(after: timeline.realTimeLimit, awaiting: time.awaited))
    }
  }

  /// Takes note of what the loop does.
  ///
  /// The loop's thread.
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

// Sleeps of tasks.
extension LoopKeeper {
  /// How long a task wants to sleep of which `rest` is left by a real clock.
  ///
  /// A task that sleeps reads a real clock, and gives its executor the instant at which the sleep is to end: the
  /// moments between are missing. They are at most as many as have passed since the loop last slept. As long as that is
  /// less than a millisecond, whole milliseconds are found again; if it is more, as on a machine that does much else,
  /// or when the test computes, the rounder duration is taken for the one that is meant.
  func duration(ofRealRest rest: Duration) -> Duration {
    let left = Int64(saturating: rest)
    guard left > 0, left < .max / 2 else { return rest }
    let isHere = loop === RunLoop.currentIfMade
    let missing = isHere ? Tick.monotonicNow.nanoseconds - awakeSince.nanoseconds : 0
    return .nanoseconds(Self.meant(left: left, missing: missing))
  }

  /// The nanoseconds that are meant if so many are left and at most so many are missing.
  static func meant(left: Int64, missing: Int64) -> Int64 {
    let least = round(left, up: 1_000_000)
    guard missing >= 1_000_000, let unit = units.first(where: { $0 > missing }) else { return least }
    let round = round(left, up: unit)
    return round <= left + missing ? round : least
  }

  private static let units: [Int64] = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000]

  private static func round(_ nanoseconds: Int64, up unit: Int64) -> Int64 { (nanoseconds + unit - 1) / unit * unit }
}
