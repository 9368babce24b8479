// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The recorded activity of a process's loops in a span of time.
package struct Timeline: Sendable {
  package var process: Int32
  package var processName: String
  package var lanes: [Lane]
  /// The names of threads without a loop that are causes.
  package var threads: [Int32: String]
  /// The relations between causes and effects.
  package var edges: [Edge] = []
  /// The number of causes whose records no longer exist.
  package var lostCauses = 0
  /// The hangs whose stacks were sampled.
  package var hangs: [Hang] = []
  /// The span, in nanoseconds of the monotonic clock.
  package var begin: Int64
  package var end: Int64
  /// The wall clock at zero of the monotonic clock, in nanoseconds since 1970, or nil if unknown.
  package var wallStart: Int64?
  /// The number of records left out because there were too many, and of those that represent several.
  package var leftOut = 0
  package var merged = 0

  package init(process: Int32, processName: String, lanes: [Lane], threads: [Int32: String], begin: Int64, end: Int64) {
    self.process = process
    self.processName = processName
    self.lanes = lanes
    self.threads = threads
    self.begin = begin
    self.end = end
  }

  /// The number of records.
  package var itemCount: Int { lanes.reduce(0) { $0 + $1.items.count } }
  /// The number of records that were overwritten before they were read.
  package var lost: Int { lanes.reduce(0) { $0 + $1.lost } }
  /// The number of inconsistent records.
  package var torn: Int { lanes.reduce(0) { $0 + $1.torn } }

  /// Removes loops together with their effects.
  package mutating func keep(_ isKept: (Lane) -> Bool) {
    lanes = lanes.filter(isKept)
    let kept = Set(lanes.map(\.thread))
    hangs.removeAll { !kept.contains($0.thread) }
    connect()
    // The causes in removed loops do not count as lost.
    lostCauses = 0
  }

  /// A loop.
  package struct Lane: Sendable {
    package var slot: Int
    package var thread: Int32
    package var name: String
    /// The items, ordered by number and thus by beginning.
    package var items: [Item]
    package var lost = 0
    package var torn = 0
    /// The thread's shares of processor time, if the process was observed while it ran.
    package var shares: [Share] = []

    package init(slot: Int, thread: Int32, name: String, items: [Item]) {
      self.slot = slot
      self.thread = thread
      self.name = name
      self.items = items
    }
  }

  /// A call-out, a sleep or a run.
  package struct Item: Sendable {
    package var number: UInt64
    /// The low 32 bits of the enclosing item's number.
    package var outer: UInt32
    package var kind: UInt8
    package var mode: String?
    package var depth: UInt8
    package var begin: Int64
    /// The end, which for an open item is that of the timeline.
    package var end: Int64
    package var isOpen = false
    /// Whether the end is unknown because its record was overwritten.
    package var isEndLost = false
    /// The function that is called.
    package var code: UInt64 = 0
    /// The place that posted, signaled, sent or added the work, or began the run.
    package var site: UInt64 = 0
    /// The time of the post.
    package var posted: Int64?
    /// The cause, as encoded in records.
    package var cause: UInt64?
    /// Whether the posting thread waits for the work.
    package var isAwaited = false
    /// The descriptor that ended a sleep.
    package var descriptor: Int32?
    /// The number of items that this represents.
    package var count = 1
    /// The index of the enclosing item in the lane, and the nesting level.
    package var parent: Int?
    package var level = 0
  }

  /// The shares of time that a thread spent running and runnable between two observations.
  package struct Share: Sendable {
    package var begin: Int64
    package var end: Int64
    package var running: Double
    package var runnable: Double
  }

  /// A reference to an item of a lane.
  package struct Place: Sendable, Hashable {
    package var lane: Int
    package var index: Int
  }

  /// A cause: an item, or a thread outside all items.
  package enum Cause: Sendable, Hashable {
    case item(Place)
    case thread(Int32)
  }

  /// A relation between a cause and its effect.
  package struct Edge: Sendable {
    package enum Kind: UInt8, Sendable {
      case post
      case signal
      case message
      case timer
      case wake
      /// The return from awaited work to the waiting thread.
      case back
    }

    package var kind: Kind
    package var from: Cause
    package var to: Place
    /// The time of the post or wake-up, or for a return, the end of the work.
    package var time: Int64
  }
}

extension Timeline.Item {
  /// Whether it is a call-out, which has code.
  package var isCallOut: Bool { kind < CRL_KIND_HOST.rawValue }
  package var isSleep: Bool { kind == UInt8(CRL_KIND_SLEEP.rawValue) }
  /// Whether it is a run, or a pass made by a host.
  package var isRun: Bool { kind == UInt8(CRL_KIND_RUN.rawValue) || kind == UInt8(CRL_KIND_HOST.rawValue) }
  /// When the work began to wait for its turn, or nil if unknown or for a timer, which waits for its date.
  package var waitsSince: Int64? { kind == UInt8(CRL_KIND_TIMER.rawValue) ? nil : posted }
}

extension Timeline.Lane {
  /// Computes the nesting of the items, and derives unknown ends from it.
  package mutating func nest() {
    var stack: [Int] = []
    for index in items.indices {
      let item = items[index]
      while let top = stack.last, !isAround(items[top], item) {
        stack.removeLast()
        // The lost item ended before the next item outside it began.
        if items[top].isEndLost { items[top].end = min(item.begin, items[top].end) }
      }
      items[index].parent = stack.last
      items[index].level = stack.count
      if let top = stack.last, items[index].isEndLost || items[index].isOpen {
        items[index].end = items[top].end
      }
      stack.append(index)
    }
  }

  private func isAround(_ outer: Timeline.Item, _ inner: Timeline.Item) -> Bool {
    if UInt32(truncatingIfNeeded: outer.number) == inner.outer { return !outer.isSleep }
    // If the enclosing item is unknown, any item that spans this one counts.
    return !outer.isSleep && outer.begin <= inner.begin && outer.end >= inner.end && !outer.isEndLost
      && outer.number < inner.number
  }

  /// The indices of call-outs that were hangs: 250 ms or longer without a nested run.
  package var hangs: [Int] {
    let threshold: Int64 = 250_000_000
    var long: [Int: (since: Int64, longest: Int64)] = [:]
    for (index, item) in items.enumerated() {
      if item.isCallOut, item.end - item.begin >= threshold { long[index] = (item.begin, 0) }
      guard item.isRun else { continue }
      var around = item.parent
      while let index = around {
        if let (since, longest) = long[index] {
          long[index] = (max(since, item.end), max(longest, item.begin - since))
        }
        around = items[index].parent
      }
    }
    return long.filter { max($0.value.longest, items[$0.key].end - $0.value.since) >= threshold }.keys.sorted()
  }

  /// Returns the index of the item with a number.
  package func index(of number: UInt64) -> Int? {
    var low = 0
    var high = items.count
    while low < high {
      let middle = (low + high) / 2
      if items[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < items.count && items[low].number == number ? low : nil
  }
}
