// SPDX-License-Identifier: Apache-2.0

extension Timeline {
  /// Where a thread stood in a hang that somebody has seen while it lasted.
  package struct Hang: Sendable {
    package var thread: Int32
    package var threadName: String
    package var begin: Int64
    /// Nil: it was not over.
    package var end: Int64?
    /// What the thread did, for people.
    package var state: String
    /// The user's functions, the innermost first.
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

  /// Adds hangs that were seen while the records were read.
  package mutating func add(_ hangs: [Hang]) {
    self.hangs += hangs
    // A thread that has hung all the time has recorded nothing.
    for hang in hangs where !lanes.contains(where: { $0.thread == hang.thread }) {
      threads[hang.thread] = hang.threadName
    }
  }

  /// The call-out that hung: the innermost that lasted for most of the hang; nil if it was not recorded.
  ///
  /// - Complexity: O(n) in the items of the thread.
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
