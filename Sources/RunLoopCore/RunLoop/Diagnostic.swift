// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import Synchronization

/// The mistakes that are reported on the standard error, because they were made in a spelling that cannot throw an
/// error.
///
/// A report names the item, the loop and the thread, and says what to do. Each kind is counted. The first eight reports
/// of a kind are written, and after them those whose number is a power of two: a mistake that is made in each pass
/// neither floods the standard error nor disappears from it.
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
  /// Relaxed: a number of reports, as all in this file.
  static let total = Atomic<Int>(0)

  /// How many reports of a kind are written without a gap.
  package static let writtenInFull = 8

  package final class Kind: Sendable {
    // Relaxed: the same, of one kind.
    private let counter = Atomic<Int>(0)

    /// How often it was reported in this process, for tests that must not depend on reports of other kinds.
    package var count: Int { counter.load(ordering: .relaxed) }

    /// Counts a mistake, and writes a line if its number is one of those that are written.
    ///
    /// Can be called from any thread. The message is made only if it is written.
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
  /// How many mistakes have been reported in this process, on the standard error, because the spelling that made them
  /// cannot throw an error.
  ///
  /// The count includes reports that were not written: the first eight of each kind are written, and after them those
  /// whose number is a power of two. A test can compare the count before and after. Can be read from any thread.
  public static var diagnosticCount: Int { Diagnostic.total.load(ordering: .relaxed) }

  /// The loop's thread, for messages.
  package var threadDescription: String {
    let id = threadID
    if id == 0 { return "a thread that has not been started" }
    // The number of a thread that has ended may belong to another thread now; the first thread's never does.
    guard takesNoItems else { return "thread \(threadName(id))" }
    return "thread \(isLeftMain ? threadName(id) : "\(id)"), which has ended"
  }

  /// The calling thread, for messages.
  package static var callingThreadDescription: String { "thread \(threadName(callingThreadID))" }
}

/// A thread's id and name, for messages.
func threadName(_ id: Int32) -> String { kernelThreadName(id).map { "\(id) \"\($0)\"" } ?? "\(id)" }

/// The kernel's name of a thread; nil if there is no such thread.
func kernelThreadName(_ id: Int32) -> String? {
  smallFile("/proc/self/task/\(id)/comm").map { String($0.prefix { !$0.isNewline }) }
}

/// An item's type and address, for messages.
func itemName(_ item: some ModeItem) -> String { "\(type(of: item)) \(addressDescription(item))" }
