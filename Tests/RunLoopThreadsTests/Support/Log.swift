@testable import RunLoopCore

/// What the call-outs of a test write down, in order: a log that is compared with a literal.
final class Log: Sendable {
  private let entries = Box<[String]>([])

  func write(_ entry: String) { entries.update { $0.append(entry) } }

  /// All entries, one space between.
  var text: String { entries.value.joined(separator: " ") }

  func count(of entry: String) -> Int { entries.value.count { $0 == entry } }
}

/// Keeps something for several threads.
final class Box<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var stored: Value

  init(_ value: Value) { stored = value }

  var value: Value {
    get { lock.withLock { stored } }
    set { lock.withLock { stored = newValue } }
  }

  @discardableResult
  func update<Result>(_ change: (inout Value) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return change(&stored)
  }
}

/// Does not keep what it names alive.
final class WeakBox<Object: AnyObject & Sendable>: @unchecked Sendable {
  // Sendable: a weak reference is read and cleared atomically, and written once.
  private(set) weak var object: Object?

  init(_ object: Object) { self.object = object }
}

/// Writes to a log when nothing holds it any more.
final class Token: Sendable {
  private let log: Log
  private let entry: String

  init(_ log: Log, _ entry: String = "released") {
    self.log = log
    self.entry = entry
  }

  /// Is there to be called by the closure that is to hold the token.
  func touch() {}

  deinit { log.write(entry) }
}
