// SPDX-License-Identifier: Apache-2.0

extension Timeline {
  /// A hang that was observed while it lasted, with the stack of its thread.
  package struct Hang: Sendable {
    package var thread: Int32
    package var threadName: String
    package var begin: Int64
    /// The end, or nil if the hang was not over.
    package var end: Int64?
    /// A description of the thread's state.
    package var state: String
    /// The user's functions, innermost first.
    package var stack: [TimelineName]

    package init(
      thread: Int32, threadName: String, begin: Int64, end: Int64?, state: String, stack: [TimelineName]
    ) {
      self.thread = thread
      self.threadName = threadName
      self.begin = begin
      self.end = end
      self.state = state
      self.stack = stack
    }
  }

  /// Adds hangs that were observed while the records were read.
  package mutating func add(_ hangs: [Hang]) {
    self.hangs += hangs
    // A thread that hung throughout has no records.
    for hang in hangs where !lanes.contains(where: { $0.thread == hang.thread }) {
      threads[hang.thread] = hang.threadName
    }
  }

  /// Returns the call-out that hung: the innermost one that lasted for most of the hang, or nil if it was not
  /// recorded.
  ///
  /// - Complexity: O(n) in the number of the thread's items.
  func place(of hang: Hang) -> Place? {
    let end = hang.end ?? self.end
    let most = (end - hang.begin) * 4 / 5
    var found: Place?
    for (lane, content) in lanes.enumerated() where content.thread == hang.thread {
      for (index, item) in content.items.enumerated() where item.isCallOut {
        guard min(item.end, end) - max(item.begin, hang.begin) >= most else { continue }
        if let found, lanes[found.lane].items[found.index].level > item.level { continue }
        found = Place(lane: lane, index: index)
      }
    }
    return found
  }
}
