// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Writes a timeline as Perfetto track events, for ui.perfetto.dev and `trace_processor`.
///
/// Each thread has a track with slices for runs, call-outs and sleeps, and counters for the queue and the load. A hang
/// has the stack of its thread. Flows lead from causes to effects. All times are of the monotonic clock, which is
/// clock 3 in Perfetto.
package final class PerfettoTrace {
  private let timeline: Timeline
  private let names: TimelineNames
  private let stacks: PerfettoStacks
  private var writer = ProtobufWriter()
  private let emit: ([UInt8]) throws(RecordError) -> Void

  private static let monotonic: UInt64 = 3
  private static let processTrack: UInt64 = 1

  /// - Parameter emit: Receives the bytes of the file in parts.
  package init(_ timeline: Timeline, _ names: TimelineNames, emit: @escaping ([UInt8]) throws(RecordError) -> Void) {
    self.timeline = timeline
    self.names = names
    self.emit = emit
    stacks = PerfettoStacks(timeline)
  }

  /// The flows of an event.
  private struct Flows {
    var starts: [UInt64] = []
    var ends: [UInt64] = []
  }

  /// An event that does not belong to an item.
  private struct Mark {
    let time: Int64
    let name: String
    var flows = Flows()
    /// The number of a stack.
    var stack: UInt64?
    /// The end of a slice, or nil for an instant.
    var end: Int64?
  }

  package func write() throws(RecordError) {
    writeClock()
    describeProcess()
    describeStacks()
    var itemFlows: [[Int: Flows]] = timeline.lanes.map { _ in [:] }
    var marks: [Int32: [Mark]] = [:]
    collectFlows(&itemFlows, &marks)
    for (hang, stack) in stacks.others {
      marks[hang.thread, default: []].append(Mark(time: max(hang.begin, timeline.begin), name: "hangs", stack: stack))
    }
    for (index, lane) in timeline.lanes.enumerated() {
      describeThread(lane.thread, lane.name, order: index)
      try writeLane(index, itemFlows[index], marks.removeValue(forKey: lane.thread) ?? [])
      try writeCounters(lane, index)
    }
    for (thread, name) in timeline.threads.sorted(by: { $0.key < $1.key }) {
      describeThread(thread, name, order: timeline.lanes.count)
      for mark in (marks[thread] ?? []).sorted(by: { $0.time < $1.time }) { writeMark(mark, thread) }
      try flush()
    }
    try flush(all: true)
  }

  private func flush(all: Bool = false) throws(RecordError) {
    guard all || writer.bytes.count > 1 << 20 else { return }
    try emit(writer.bytes)
    writer.clear()
  }
}

// Flows.
extension PerfettoTrace {
  private func collectFlows(_ items: inout [[Int: Flows]], _ marks: inout [Int32: [Mark]]) {
    var next: UInt64 = 1
    for edge in timeline.edges {
      let flow = next
      next += 1
      let target = timeline.lanes[edge.to.lane].items[edge.to.index]
      switch edge.kind {
      case .back:
        // The flow begins at the work's slice and ends where the waiting thread resumed.
        items[edge.to.lane][edge.to.index, default: Flows()].starts.append(flow)
        let mark = Mark(time: edge.time, name: "has waited", flows: Flows(ends: [flow]))
        marks[thread(of: edge.from), default: []].append(mark)
        if let posted = target.posted, posted < edge.time {
          marks[thread(of: edge.from), default: []].append(
            Mark(time: posted, name: "waits for \(timeline.lanes[edge.to.lane].name)", end: edge.time))
        }
      case .wake, .post, .signal, .message, .timer:
        switch edge.from {
        case .item(let place): items[place.lane][place.index, default: Flows()].starts.append(flow)
        case .thread(let thread):
          // The exact time of a wake-up is unknown, but it precedes the end of the sleep.
          let mark = Mark(
            time: edge.kind == .wake ? edge.time - 1 : edge.time, name: edge.kind == .wake ? "wakes" : "posts",
            flows: Flows(starts: [flow]))
          marks[thread, default: []].append(mark)
        }
        items[edge.to.lane][edge.to.index, default: Flows()].ends.append(flow)
      }
    }
  }

  private func thread(of cause: Timeline.Cause) -> Int32 {
    switch cause {
    case .thread(let thread): thread
    case .item(let place): timeline.lanes[place.lane].thread
    }
  }
}

// Tracks.
extension PerfettoTrace {
  private func add(_ fill: (inout ProtobufWriter) -> Void) {
    writer.message(1) { packet in
      fill(&packet)
      packet.number(10, UInt64(1))
    }
  }

  /// Declares the clock of the times, with a snapshot of the other clocks.
  private func writeClock() {
    let begin = timeline.begin
    add { packet in
      packet.number(8, begin)
      packet.number(58, Self.monotonic)
      packet.message(6) { snapshot in
        for clock in [Self.monotonic, 6] {
          snapshot.message(1) {
            $0.number(1, clock)
            $0.number(2, begin)
          }
        }
        snapshot.number(2, Self.monotonic)
      }
    }
  }

  private func describeProcess() {
    let (process, name) = (timeline.process, timeline.processName)
    let lost = timeline.lost
    let leftOut = timeline.leftOut
    add { packet in
      packet.number(8, timeline.begin)
      packet.number(58, Self.monotonic)
      // Earlier packets are not needed to read the following ones.
      packet.number(13, UInt64(1))
      packet.message(60) { track in
        track.number(1, Self.processTrack)
        track.message(3) {
          $0.number(1, Int64(process))
          $0.text(6, name)
        }
      }
    }
    guard lost > 0 || leftOut > 0 else { return }
    add { packet in
      packet.number(8, timeline.begin)
      packet.number(58, Self.monotonic)
      packet.message(11) { event in
        event.number(9, UInt64(3))
        event.number(11, Self.processTrack)
        event.text(22, "runloop")
        event.text(23, "\(lost) records were lost, and \(leftOut) left out")
      }
    }
  }

  /// Writes the interned data of the stacks.
  private func describeStacks() {
    guard !stacks.isEmpty else { return }
    let (stacks, program) = (stacks, timeline.processName)
    add { packet in
      packet.number(8, timeline.begin)
      packet.number(58, Self.monotonic)
      packet.number(13, UInt64(2))
      packet.message(12) { stacks.write(&$0, program: program) }
    }
  }

  private func track(_ thread: Int32) -> UInt64 { 1 << 32 | UInt64(UInt32(bitPattern: thread)) }

  private func describeThread(_ thread: Int32, _ name: String, order: Int) {
    let process = timeline.process
    let uuid = track(thread)
    add { packet in
      packet.number(8, timeline.begin)
      packet.number(58, Self.monotonic)
      packet.message(60) { track in
        track.number(1, uuid)
        track.message(4) {
          $0.number(1, Int64(process))
          $0.number(2, Int64(thread))
          $0.text(5, name)
        }
      }
    }
  }

  private func describeCounter(_ uuid: UInt64, _ thread: Int32, _ name: String, unit: String) {
    let parent = track(thread)
    add { packet in
      packet.number(8, timeline.begin)
      packet.number(58, Self.monotonic)
      packet.message(60) { track in
        track.number(1, uuid)
        track.number(5, parent)
        track.text(2, name)
        track.message(8) { $0.text(6, unit) }
      }
    }
  }
}

// Slices.
extension PerfettoTrace {
  private func event(
    _ time: Int64, _ type: UInt64, _ track: UInt64, stack: UInt64? = nil, _ fill: (inout ProtobufWriter) -> Void
  ) {
    add { packet in
      packet.number(8, time)
      packet.number(58, Self.monotonic)
      // Depends on earlier packets.
      if stack != nil { packet.number(13, UInt64(2)) }
      packet.message(11) { event in
        event.number(9, type)
        event.number(11, track)
        if let stack { event.number(56, stack) }
        fill(&event)
      }
    }
  }

  private func writeLane(_ number: Int, _ flows: [Int: Flows], _ marks: [Mark]) throws(RecordError) {
    let lane = timeline.lanes[number]
    let track = track(lane.thread)
    let marks = marks.sorted { ($0.time, -($0.end ?? $0.time)) < ($1.time, -($1.end ?? $1.time)) }
    var mark = 0
    var stack: [Int] = []
    for index in lane.items.indices {
      let item = lane.items[index]
      while let top = stack.last, top != item.parent {
        // Marks before the end of the item.
        while mark < marks.count, marks[mark].time < lane.items[top].end {
          writeMark(marks[mark], lane.thread)
          mark += 1
        }
        end(lane.items[top], track, flows[top])
        stack.removeLast()
      }
      while mark < marks.count, marks[mark].time < item.begin {
        writeMark(marks[mark], lane.thread)
        mark += 1
      }
      begin(item, track, flows[index], stack: stacks.byPlace[.init(lane: number, index: index)])
      stack.append(index)
      try flush()
    }
    while let top = stack.popLast() {
      while mark < marks.count, marks[mark].time < lane.items[top].end {
        writeMark(marks[mark], lane.thread)
        mark += 1
      }
      end(lane.items[top], track, flows[top])
    }
    while mark < marks.count {
      writeMark(marks[mark], lane.thread)
      mark += 1
    }
  }

  private func begin(_ item: Timeline.Item, _ track: UInt64, _ flows: Flows?, stack: UInt64?) {
    let title = names.title(item)
    let code = names.code(item)
    let posted = names.posted(item)
    event(item.begin, 1, track, stack: stack) { event in
      event.text(22, Timeline.kindName(item.kind))
      event.text(23, title)
      for flow in flows?.starts ?? [] { event.fixed64(47, flow) }
      if !item.isSleep { for flow in flows?.ends ?? [] { event.fixed64(48, flow) } }
      if let mode = item.mode { Self.annotate(&event, "mode", mode) }
      Self.annotate(&event, "depth", Int64(item.depth))
      if let code, !code.place.isEmpty { Self.annotate(&event, "code", code.place) }
      if let posted {
        Self.annotate(&event, "posted from", posted.function)
        if !posted.place.isEmpty { Self.annotate(&event, "posted at", posted.place) }
      }
      if let time = item.waitsSince { Self.annotate(&event, "delay", max(0, item.begin - time)) }
      if item.isEndLost { Self.annotate(&event, "end", "not known") }
    }
  }

  private func end(_ item: Timeline.Item, _ track: UInt64, _ flows: Flows?) {
    // An open item has no end.
    guard !item.isOpen else { return }
    event(item.end, 2, track) { event in
      if item.isSleep { for flow in flows?.ends ?? [] { event.fixed64(48, flow) } }
    }
  }

  private func writeMark(_ mark: Mark, _ thread: Int32) {
    let track = track(thread)
    event(mark.time, mark.end == nil ? 3 : 1, track, stack: mark.stack) { event in
      event.text(22, "cause")
      event.text(23, mark.name)
      for flow in mark.flows.starts { event.fixed64(47, flow) }
      for flow in mark.flows.ends { event.fixed64(48, flow) }
    }
    if let end = mark.end { event(end, 2, track) { _ in } }
  }

  private static func annotate(_ event: inout ProtobufWriter, _ name: String, _ value: String) {
    event.message(4) {
      $0.text(10, name)
      $0.text(6, value)
    }
  }

  private static func annotate(_ event: inout ProtobufWriter, _ name: String, _ value: Int64) {
    event.message(4) {
      $0.text(10, name)
      $0.number(4, value)
    }
  }
}

// Counters.
extension PerfettoTrace {
  private func writeCounters(_ lane: Timeline.Lane, _ index: Int) throws(RecordError) {
    let queue = 2 << 32 | UInt64(index)
    let busy = 3 << 32 | UInt64(index)
    describeCounter(queue, lane.thread, "queue of \(lane.name)", unit: "blocks")
    for (time, value) in lane.queue {
      event(time, 4, queue) { $0.number(30, Int64(value)) }
      try flush()
    }
    describeCounter(busy, lane.thread, "busy \(lane.name)", unit: "%")
    for (time, share) in lane.busy(from: timeline.begin, to: timeline.end) {
      event(time, 4, busy) { $0.double(44, (share * 1000).rounded() / 10) }
    }
    try flush()
  }
}

extension Timeline.Lane {
  /// The number of waiting work items, at each time at which it changes, as far as recorded.
  package var queue: [(time: Int64, count: Int)] {
    var changes: [(time: Int64, step: Int)] = []
    for item in items where item.kind <= CRL_KIND_JOB.rawValue {
      guard let posted = item.posted, posted <= item.begin else { continue }
      changes.append((posted, 1))
      changes.append((item.begin, -1))
    }
    changes.sort { ($0.time, $1.step) < ($1.time, $0.step) }
    var found: [(time: Int64, count: Int)] = []
    var count = 0
    for change in changes {
      count += change.step
      if found.last?.time == change.time {
        found[found.count - 1].count = count
      } else {
        found.append((change.time, count))
      }
    }
    return found
  }

  /// Returns the share of time in call-outs for each of at most a thousand intervals.
  package func busy(from begin: Int64, to end: Int64) -> [(time: Int64, share: Double)] {
    guard end > begin else { return [] }
    let span = max(1_000_000, (end - begin) / 1000)
    var sums = [Int64](repeating: 0, count: Int((end - begin) / span) + 1)
    for item in items where item.isCallOut && !(item.parent.map { isWithinCallOut($0) } ?? false) {
      var from = max(item.begin, begin)
      while from < min(item.end, end) {
        let index = Int((from - begin) / span)
        let to = min(item.end, begin + Int64(index + 1) * span, end)
        sums[index] &+= to - from
        from = to
      }
    }
    return sums.enumerated().map { (begin + Int64($0.offset) * span, min(1, Double($0.element) / Double(span))) }
  }

  /// Returns whether an item is a call-out or is nested in one.
  private func isWithinCallOut(_ index: Int) -> Bool {
    var next: Int? = index
    while let place = next {
      if items[place].isCallOut { return true }
      next = items[place].parent
    }
    return false
  }
}
