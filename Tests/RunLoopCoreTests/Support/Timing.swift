@testable import RunLoopCore

extension VirtualTime {
  /// The instant so many virtual milliseconds after the clock began.
  func instant(_ milliseconds: Int) -> SuspendingClock.Instant { Tick(milliseconds: milliseconds).instant }

  /// Logs an entry with the milliseconds at which it is written: `T20`.
  func stamp(_ log: Log, _ entry: String) { log.write("\(entry)\(milliseconds)") }
}

extension Tick {
  init(milliseconds: Int) { self.init(nanoseconds: Int64(milliseconds) * 1_000_000) }

  var milliseconds: Int { Int(nanoseconds / 1_000_000) }
}

extension SuspendingClock.Instant {
  /// The milliseconds since the clock of its loop began.
  var milliseconds: Int { Tick(self).milliseconds }
}

extension Timer {
  /// Makes a timer that is in no mode, with its date in virtual milliseconds.
  convenience init(
    at milliseconds: Int, every interval: Duration? = nil, tolerance: Duration = .zero,
    _ block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(
      deadline: Tick(milliseconds: milliseconds).instant, interval: interval, tolerance: tolerance, block: block)
  }
}

/// Writes to a log when nothing holds it any more.
final class Token: Sendable {
  private let log: Log
  private let entry: String

  init(_ log: Log, _ entry: String = "released") {
    self.log = log
    self.entry = entry
  }

  /// Keeps the token alive to here.
  func touch() {}

  deinit { log.write(entry) }
}

/// Keeps something for several threads or call-outs.
final class Box<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var stored: Value

  init(_ value: Value) { stored = value }

  var value: Value {
    get { lock.withLock { stored } }
    set { lock.withLock { stored = newValue } }
  }
}

/// Does not keep what it names alive.
final class WeakBox<Object: AnyObject & Sendable>: @unchecked Sendable {
  // Sendable: a weak reference is read and cleared atomically, and written once.
  private(set) weak var object: Object?

  init(_ object: Object) { self.object = object }
}
