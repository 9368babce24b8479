// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// What the loops of a process did in a span of time, as their records say.
package struct Timeline: Sendable {
  package var process: Int32
  package var processName: String
  package var lanes: [Lane]
  /// The names of threads without a loop that have caused something.
  package var threads: [Int32: String]
  /// What has caused what.
  package var edges: [Edge] = []
  /// Causes whose records are not there any more.
  package var lostCauses = 0
  /// The hangs whose stacks were seen.
  package var hangs: [Hang] = []
  /// The span, in nanoseconds of the monotonic clock.
  package var begin: Int64
  package var end: Int64
  /// What the wall clock said at zero of the monotonic clock, in nanoseconds since 1970; nil: that is not known.
  package var wallStart: Int64?
  /// How many records were left out because there were too many, and how many stand for several.
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

  /// How many records there are.
  package var itemCount: Int { lanes.reduce(0) { $0 + $1.items.count } }
  /// How many records were overwritten before they were read.
  package var lost: Int { lanes.reduce(0) { $0 + $1.lost } }
  /// How many contradict themselves.
  package var torn: Int { lanes.reduce(0) { $0 + $1.torn } }

  /// Leaves loops out, and with them what they have caused.
  package mutating func keep(_ isKept: (Lane) -> Bool) {
    lanes = lanes.filter(isKept)
    let kept = Set(lanes.map(\.thread))
    hangs.removeAll { !kept.contains($0.thread) }
    connect()
    // Those of the loops that are left out are not lost.
    lostCauses = 0
  }

  /// A loop.
  package struct Lane: Sendable {
    package var slot: Int
    package var thread: Int32
    package var name: String
    /// By their numbers, which is by their begins.
    package var items: [Item]
    package var lost = 0
    package var torn = 0
    /// The thread's shares of the processor, if the process was looked at while it ran.
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
    /// The low word of the number of the item around it.
    package var outer: UInt32
    package var kind: UInt8
    package var mode: String?
    package var depth: UInt8
    package var begin: Int64
    /// What goes on ends with the timeline.
    package var end: Int64
    package var isOpen = false
    /// When it ended is not known: its record was overwritten before.
    package var isEndLost = false
    /// The function that is called.
    package var code: UInt64 = 0
    /// Where the work was posted, signalled, sent or added, or where a run was begun.
    package var site: UInt64 = 0
    /// When that was.
    package var posted: Int64?
    /// A word of the layout.
    package var cause: UInt64?
    /// Whether whoever has posted the work waits for it.
    package var isAwaited = false
    /// The descriptor that has ended a sleep.
    package var descriptor: Int32?
    /// How many items it stands for.
    package var count = 1
    /// The place of the item around it among the lane's, and how many are around it.
    package var parent: Int?
    package var level = 0
  }

  /// How a thread got on between two looks, in shares of one.
  package struct Share: Sendable {
    package var begin: Int64
    package var end: Int64
    package var running: Double
    package var runnable: Double
  }

  /// An item of a lane.
  package struct Place: Sendable, Hashable {
    package var lane: Int
    package var index: Int
  }

  /// What has caused something.
  package enum Cause: Sendable, Hashable {
    case item(Place)
    case thread(Int32)
  }

  /// That something has caused something.
  package struct Edge: Sendable {
    package enum Kind: UInt8, Sendable {
      case post
      case signal
      case message
      case timer
      case wake
      /// Work has ended that somebody has waited for.
      case back
    }

    package var kind: Kind
    package var from: Cause
    package var to: Place
    /// When it was posted, or woken; of a return, when the work ended.
    package var time: Int64
  }
}

extension Timeline.Item {
  /// Whether it is a call-out, which has code.
  package var isCallOut: Bool { kind < CRL_KIND_HOST.rawValue }
  package var isSleep: Bool { kind == UInt8(CRL_KIND_SLEEP.rawValue) }
  /// Whether it is a run, or a pass that a host has let the loop make.
  package var isRun: Bool { kind == UInt8(CRL_KIND_RUN.rawValue) || kind == UInt8(CRL_KIND_HOST.rawValue) }
  /// When the work began to wait for its turn; nil: not known, or of a timer, which waits for its date.
  package var waitsSince: Int64? { kind == UInt8(CRL_KIND_TIMER.rawValue) ? nil : posted }
}

extension Timeline.Lane {
  /// Finds for each item the one around it, and lets what was lost of ends follow from the rest.
  package mutating func nest() {
    var stack: [Int] = []
    for index in items.indices {
      let item = items[index]
      while let top = stack.last, !isAround(items[top], item) {
        stack.removeLast()
        // What follows and does not stand in it has begun when it was over.
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
    // One whose own surroundings were lost stands in whatever lasts longer.
    return !outer.isSleep && outer.begin <= inner.begin && outer.end >= inner.end && !outer.isEndLost
      && outer.number < inner.number
  }

  /// Which call-outs were hangs: of 250 ms and more in which no run was nested in them.
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

  /// The item of a number.
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
