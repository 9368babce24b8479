import Foundation
import RunLoopCore
import RunLoopKit

extension Date {
  /// The date so many virtual milliseconds after the clock began, where a virtual wall clock says the beginning of 2001.
  static func virtual(_ milliseconds: Int) -> Date {
    Date(timeIntervalSinceReferenceDate: Double(milliseconds) / 1000)
  }

  /// The virtual milliseconds of a date, or its name.
  var text: String {
    switch self {
    case .distantFuture: "future"
    case .distantPast: "past"
    default: "\(timeIntervalSinceReferenceDate * 1000)".replacing(/\.0$/, with: "")
    }
  }
}

extension VirtualTime {
  /// The virtual milliseconds since the clock began.
  var milliseconds: Int { Int(now.nanoseconds / 1_000_000) }

  /// Logs an entry with the milliseconds at which it is written: `T20`.
  func stamp(_ log: Log, _ entry: String) { log.write("\(entry)\(milliseconds)") }
}

extension RunLoop {
  /// Adds a source that is never signalled: it keeps the mode alive.
  @discardableResult
  func keepAlive(_ mode: Mode = .default) -> Source {
    let source = Source {}
    add(source, forMode: mode)
    return source
  }

  /// Adds a source that is signalled already, and wakes the loop.
  @discardableResult
  func signalled(mode: Mode = .default, _ body: @escaping @Sendable () -> Void) -> Source {
    let source = Source(perform: body)
    add(source, forMode: mode)
    source.signal()
    wakeUp()
    return source
  }

  /// Adds a timer that fires once after so many virtual milliseconds.
  @discardableResult
  func after(_ milliseconds: Int, mode: Mode = .default, _ body: @escaping @Sendable (Timer) -> Void) -> Timer {
    let timer = Timer(deadline: now.advanced(by: .milliseconds(milliseconds)), block: body)
    add(timer, forMode: mode)
    return timer
  }
}

/// What one of a test's processes has complained about, line by line.
func complaints(_ bytes: [UInt8]) -> [String] {
  String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init).filter { $0.hasPrefix("RunLoopKit: ") }
}
