import Synchronization

@testable import RunLoopCore

/// What the call-outs of a test write down, in order: a log that is compared with a literal.
final class Log: Sendable {
  private let entries = Mutex<[String]>([])

  func write(_ entry: String) { entries.withLock { $0.append(entry) } }

  func clear() { entries.withLock { $0 = [] } }

  /// All entries, one space between.
  var text: String { entries.withLock { $0.joined(separator: " ") } }

  func count(of entry: String) -> Int { entries.withLock { $0.count { $0 == entry } } }
}

extension RunLoop.Activity {
  /// The short names of the specification.
  var letter: String {
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
  /// Adds an observer of all stages that logs them.
  @discardableResult
  func observe(_ log: Log, mode: Mode = .default, _ activities: Activity = .all) -> Observer {
    let observer = Observer(activities: activities) { _, activity in log.write(activity.letter) }
    add(observer, forMode: mode)
    return observer
  }

  /// Adds an observer that does something at one stage, once.
  func once(_ activity: Activity, mode: Mode = .default, _ body: @escaping @Sendable () -> Void) {
    add(Observer(activities: activity, repeats: false) { _, _ in body() }, forMode: mode)
  }

  /// Adds a source that is never signalled: it keeps the mode alive.
  @discardableResult
  func keepAlive(_ mode: Mode = .default) -> Source {
    let source = Source {}
    add(source, forMode: mode)
    return source
  }

  /// Adds a timer that fires once after a time.
  @discardableResult
  func after(_ delay: Duration, mode: Mode = .default, _ body: @escaping @Sendable (Timer) -> Void) -> Timer {
    let timer = Timer(deadline: waiter.now.instant.advanced(by: delay), block: body)
    add(timer, forMode: mode)
    return timer
  }

  /// Adds a timer that fires again and again.
  @discardableResult
  func every(
    _ interval: Duration, tolerance: Duration = .zero, mode: Mode = .default,
    _ body: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let timer = Timer(
      deadline: waiter.now.instant.advanced(by: interval), interval: interval, tolerance: tolerance, block: body)
    add(timer, forMode: mode)
    return timer
  }

  /// Adds a source that is signalled already.
  @discardableResult
  func signalled(order: Int = 0, mode: Mode = .default, _ body: @escaping @Sendable () -> Void) -> Source {
    let source = Source(order: order, perform: body)
    add(source, forMode: mode)
    source.signal()
    return source
  }
}

/// The virtual milliseconds since the clock began.
extension VirtualTime {
  var milliseconds: Int { Int(now.nanoseconds / 1_000_000) }
}
