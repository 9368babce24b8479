// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A loop under test with the instruments around it.
///
/// To be used on the loop's own thread.
struct Rig: Sendable {
  /// The loop's clock, which moves only when the loop sleeps or something takes its time.
  let time: SteppedTime
  let loop: RunLoop
  /// All that the loop did.
  let trace: Trace
  /// What the experiment says.
  let log: Record

  /// By how much the clock is moved to end a run that makes passes without end at one moment.
  static let longerThanAnyRun = Duration.seconds(1_000_000)
}

// The clock.
extension Rig {
  /// The whole seconds since the loop was made.
  var seconds: Int { Int(time.now.nanoseconds / 1_000_000_000) }

  /// The moment of the loop's clock.
  var now: SuspendingClock.Instant { time.now.instant }

  /// Writes a line of the experiment's log, with the virtual time before it.
  func note(_ line: String) {
    let milliseconds = time.now.nanoseconds / 1_000_000
    let clock = [milliseconds / 3_600_000, milliseconds / 60_000 % 60, milliseconds / 1000 % 60]
    let text = clock.map { padded($0, to: 2) }.joined(separator: ":")
    log.write("\(text).\(padded(milliseconds % 1000, to: 3))  \(line)")
  }
}

// What most experiments put into a loop.
extension Rig {
  /// Adds a source that nobody signals: it keeps the mode alive.
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
  /// The name of a single stage.
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

/// The names of modes, sorted, with one space between.
func names(of modes: some Sequence<RunLoop.Mode>) -> String {
  modes.map(\.rawValue).sorted().joined(separator: " ")
}

/// A number with leading zeros.
func padded(_ number: Int64, to width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
