// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

extension RunLoop.Activity {
  /// The activity's abbreviation in the specification.
  package var letter: String {
    switch self {
    case .entry: "E"
    case .beforeTimers: "BT"
    case .beforeSources: "BS"
    case .beforeWaiting: "BW"
    case .afterWaiting: "AW"
    case .exit: "X"
    default: "\(rawValue)"
    }
  }
}

extension RunLoop {
  /// Adds an observer of all activities that logs them.
  @discardableResult
  package func observe(_ log: Log, mode: Mode = .default, _ activities: Activity = .all) -> Observer {
    let observer = Observer(activities: activities) { _, activity in log.write(activity.letter) }
    add(observer, forMode: mode)
    return observer
  }

  /// Adds an observer that runs a body once, at one activity.
  package func once(_ activity: Activity, mode: Mode = .default, _ body: @escaping @Sendable () -> Void) {
    add(Observer(activities: activity, repeats: false) { _, _ in body() }, forMode: mode)
  }

  /// Adds a source that is never signalled, to keep the mode alive.
  @discardableResult
  package func keepAlive(_ mode: Mode = .default) -> Source {
    let source = Source {}
    add(source, forMode: mode)
    return source
  }

  /// Adds a timer that fires once after a delay.
  @discardableResult
  package func after(_ delay: Duration, mode: Mode = .default, _ body: @escaping @Sendable (Timer) -> Void) -> Timer {
    let timer = Timer(deadline: now.advanced(by: delay), block: body)
    add(timer, forMode: mode)
    return timer
  }

  /// Adds a repeating timer.
  @discardableResult
  package func every(
    _ interval: Duration, tolerance: Duration = .zero, mode: Mode = .default,
    _ body: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let timer = Timer(deadline: now.advanced(by: interval), interval: interval, tolerance: tolerance, block: body)
    add(timer, forMode: mode)
    return timer
  }

  /// Adds a source that is already signalled, and optionally wakes the loop.
  @discardableResult
  package func signalled(
    order: Int = 0, mode: Mode = .default, wakes: Bool = false, _ body: @escaping @Sendable () -> Void
  ) -> Source {
    let source = Source(order: order, perform: body)
    add(source, forMode: mode)
    source.signal()
    if wakes { wakeUp() }
    return source
  }
}

/// Returns the error that a run loop method throws, or nil.
package func failure(of body: () throws(RunLoopError) -> Void) -> RunLoopError? {
  do throws(RunLoopError) {
    try body()
    return nil
  } catch {
    return error
  }
}
