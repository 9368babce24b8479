// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import Synchronization

/// Reports misuse on standard error when the API that was misused cannot throw.
///
/// A report names the item, the loop and the thread, and suggests a fix. Each kind is counted separately. The first
/// eight reports of a kind are written; after that, only those whose count is a power of two, so a mistake repeated on
/// every pass neither floods standard error nor goes unnoticed.
package enum Diagnostic {
  package static let foreignRun = Kind()
  package static let commonRun = Kind()
  package static let boundItem = Kind()
  package static let endedLoop = Kind()
  package static let mainThreadHasLeft = Kind()
  package static let noMode = Kind()
  package static let mainQueue = Kind()
  package static let foreignQueue = Kind()
  package static let gate = Kind()
  package static let portComponent = Kind()
  package static let coreFoundation = Kind()
  package static let sleepless = Kind()
  package static let unread = Kind()
  package static let emptyRuns = Kind()
  package static let unservedItems = Kind()
  package static let transaction = Kind()
  package static let layout = Kind()

  /// The number of reports of all kinds, including those that were counted but not written.
  ///
  /// The counters in this file use relaxed ordering because they order no other memory.
  static let total = Atomic<Int>(0)

  /// The number of reports of each kind that are written before the rest are thinned out.
  package static let writtenInFull = 8

  package final class Kind: Sendable {
    private let counter = Atomic<Int>(0)

    /// The number of reports of this kind in the process, so that a test does not depend on reports of other kinds.
    package var count: Int { counter.load(ordering: .relaxed) }

    /// Counts a mistake and, depending on the count, writes a line about it.
    ///
    /// Can be called from any thread. The message is evaluated only if it is written.
    package func report(_ message: @autoclosure () -> String) {
      Diagnostic.total.wrappingAdd(1, ordering: .relaxed)
      let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
      guard number <= Diagnostic.writtenInFull || number & (number - 1) == 0 else { return }
      var line = "RunLoopKit: \(message())"
      if number > Diagnostic.writtenInFull { line += " (\(number) reports of this kind so far)" }
      line += "\n"
      line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
  }
}

extension RunLoop {
  /// The number of mistakes that were reported on standard error in this process because the API that was misused
  /// cannot throw.
  ///
  /// Starts at 0 and includes reports that were not written: the first eight of each kind are written, then those
  /// whose count is a power of two. A test can compare the count before and after. Can be read from any thread.
  public static var diagnosticCount: Int { Diagnostic.total.load(ordering: .relaxed) }

  /// A description of the loop's thread for messages.
  package var threadDescription: String {
    let id = threadID
    if id == 0 { return "a thread that has not been started" }
    // The kernel may reuse the id of a thread that has ended, but never that of the first thread.
    guard takesNoItems else { return "thread \(threadName(id))" }
    return "thread \(isLeftMain ? threadName(id) : "\(id)"), which has ended"
  }

  /// A description of the calling thread for messages.
  package static var callingThreadDescription: String { "thread \(threadName(callingThreadID))" }
}

/// A thread's id and name for messages.
func threadName(_ id: Int32) -> String { kernelThreadName(id).map { "\(id) \"\($0)\"" } ?? "\(id)" }

/// The kernel's name for a thread, or `nil` if there is no such thread.
func kernelThreadName(_ id: Int32) -> String? {
  smallFile("/proc/self/task/\(id)/comm").map { String($0.prefix { !$0.isNewline }) }
}

/// An item's type and address for messages.
func itemName(_ item: some ModeItem) -> String { "\(type(of: item)) \(addressDescription(item))" }
