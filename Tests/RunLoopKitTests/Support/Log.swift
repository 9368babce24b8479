import Synchronization

/// What the call-outs of a test write down, in order: a log that is compared with a literal.
final class Log: Sendable {
  private let entries = Mutex<[String]>([])

  func write(_ entry: String) { entries.withLock { $0.append(entry) } }

  /// All entries, one space between.
  var text: String { entries.withLock { $0.joined(separator: " ") } }

  func count(of entry: String) -> Int { entries.withLock { $0.count { $0 == entry } } }
}

/// Keeps something for several threads or call-outs.
final class Box<Value: Sendable>: Sendable {
  private let stored: Mutex<Value>

  init(_ value: Value) { stored = Mutex(value) }

  var value: Value {
    get { stored.withLock { $0 } }
    set { stored.withLock { $0 = newValue } }
  }
}

/// Does not keep what it names alive.
final class WeakBox<Object: AnyObject & Sendable>: @unchecked Sendable {
  // Sendable: a weak reference is read and cleared atomically, and written once.
  private(set) weak var object: Object?

  init(_ object: Object?) { self.object = object }
}

/// Writes to a log when nothing holds it any more.
final class Token: Sendable {
  private let log: Log
  private let entry: String

  init(_ log: Log, _ entry: String = "released") {
    self.log = log
    self.entry = entry
  }

  /// Is there to be called from the closure that is to hold the token.
  func touch() {}

  deinit { log.write(entry) }
}
