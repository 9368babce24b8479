// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// An instrumented loop under test; must be used on the loop's own thread.
struct Rig: Sendable {
  /// The loop's clock, which advances only when the loop sleeps or a call-out spends time.
  ///
  /// Its log contains the loop's activity.
  let time: VirtualTime
  let loop: RunLoop
  /// The messages of the experiment.
  let log: Record
}

// The clock.
extension Rig {
  /// The whole seconds since the loop was created.
  var seconds: Int { Int(time.elapsed.components.seconds) }

  /// The current time of the loop's clock.
  var now: SuspendingClock.Instant { time.now }

  /// Writes a line to the experiment's log, preceded by the virtual time.
  func note(_ line: String) {
    let (seconds, attoseconds) = time.elapsed.components
    let clock = [seconds / 3600, seconds / 60 % 60, seconds % 60]
    let text = clock.map { padded($0, to: 2) }.joined(separator: ":")
    log.write("\(text).\(padded(attoseconds / 1_000_000_000_000_000, to: 3))  \(line)")
  }

  /// Adds an observer that calls a closure whenever the loop has slept until a later time, in the default mode.
  ///
  /// A wait that finds something ready takes no time and does not count. The closure is called after afterWaiting has
  /// been written to the time's log.
  func whenSlept(_ body: @escaping @Sendable () -> Void) {
    let began = Found(Duration.zero)
    observe(.beforeWaiting, order: .max) { [time] _, _ in began.value = time.elapsed }
    observe(.afterWaiting, order: .min) { [time] _, _ in if time.elapsed > began.value { body() } }
  }

  /// Counts the loop's sleeps from now on.
  func countSleeps() -> Tally {
    let sleeps = Tally()
    whenSlept { sleeps.add() }
    return sleeps
  }
}

// Items that most experiments add to a loop.
extension Rig {
  /// Adds a source that is never signalled, to keep the mode alive.
  @discardableResult
  func keepAlive(_ mode: RunLoop.Mode = .default) -> RunLoop.Source {
    let source = RunLoop.Source {}
    loop.add(source, forMode: mode)
    return source
  }

  /// Adds an observer.
  @discardableResult
  func observe(
    _ activities: RunLoop.Activity, mode: RunLoop.Mode = .default, order: Int = 0,
    _ handler: @escaping @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void
  ) -> RunLoop.Observer {
    let observer = RunLoop.Observer(activities: activities, order: order, handler: handler)
    loop.add(observer, forMode: mode)
    return observer
  }
}

extension RunLoop.Activity {
  /// The name of a single activity.
  var name: String {
    switch self {
    case .entry: "entry"
    case .beforeTimers: "beforeTimers"
    case .beforeSources: "beforeSources"
    case .beforeWaiting: "beforeWaiting"
    case .afterWaiting: "afterWaiting"
    case .exit: "exit"
    default: "activities \(rawValue)"
    }
  }
}

/// Returns the names of modes, sorted and separated by spaces.
func names(of modes: some Sequence<RunLoop.Mode>) -> String {
  modes.map(\.rawValue).sorted().joined(separator: " ")
}

/// Formats a number with leading zeros.
func padded(_ number: Int64, to width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
