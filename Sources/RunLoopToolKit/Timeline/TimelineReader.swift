// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// Reads the records of a process, once or continuously.
///
/// New records are copied from the rings often enough that few are overwritten; those that are get counted. Must be
/// used on a single thread.
package final class TimelineReader {
  private let file: RecordFile
  private let target: TargetProcess?
  /// The maximum number of records to keep.
  private let limit: Int
  private var loops: [Int: Loop] = [:]
  private var ended: [Loop] = []
  private var count = 0
  private var leftOut = 0
  private var shares: [Int32: ThreadShares] = [:]

  /// The records of a loop; a slot may have been used by other loops before.
  private struct Loop {
    let slot: Int
    let generation: UInt32
    var thread: Int32
    var name = ""
    var last: UInt64 = 0
    var records: [(record: crl_record, post: crl_post?)] = []
    /// The indices of records without an end.
    var open: [Int] = []
    var lost = 0
    var torn = 0
  }

  /// - Parameter target: The process, if it is running. The default is `nil`.
  package init(_ file: RecordFile, of target: TargetProcess? = nil, limit: Int = 4_000_000) {
    self.file = file
    self.target = target
    self.limit = limit
  }

  /// The fraction of the fullest ring that was overwritten since the previous read.
  package private(set) var fill = 0.0

  /// Copies the records that are new since the last call.
  ///
  /// - Parameter start: On the first call, the time in ticks before which ended records are left out. The default is
  ///   zero.
  package func read(since start: UInt64 = 0) throws(RecordError) {
    try file.refresh()
    fill = 0
    for slot in 0..<min(file.faceCount, Int(CRL_RINGS)) {
      let face = file.face(slot)
      guard face.generation > 0, face.thread != 0 else { continue }
      if let known = loops[slot], known.generation != face.generation {
        ended.append(known)
        loops[slot] = nil
      }
      var loop = loops[slot] ?? Loop(slot: slot, generation: face.generation, thread: face.thread)
      if loop.name.isEmpty { loop.name = name(slot, face) }
      let isFirst = loops[slot] == nil
      readOpen(&loop)
      readNew(&loop, face, isFirst: isFirst, since: start)
      loops[slot] = loop
    }
  }

  /// Reads the threads' shares of processor time.
  package func readShares() {
    guard let target else { return }
    let now = crl_monotonic_nanoseconds()
    for loop in loops.values { shares[loop.thread, default: ThreadShares()].note(target, loop.thread, at: now) }
  }

  private func name(_ slot: Int, _ face: crl_face) -> String {
    if face.thread == file.process { return "main" }
    let name = file.name(slot)
    return name.isEmpty ? target?.kernelName(ofThread: face.thread) ?? "\(face.thread)" : name
  }

  /// Checks whether open items have ended.
  private func readOpen(_ loop: inout Loop) {
    var open: [Int] = []
    for index in loop.open {
      guard let record = file.record(loop.records[index].record.number, of: loop.slot) else { continue }
      loop.records[index].record = record
      if record.end == 0 { open.append(index) }
    }
    loop.open = open
  }

  private func readNew(_ loop: inout Loop, _ face: crl_face, isFirst: Bool, since start: UInt64) {
    let newest = face.number
    let kept = UInt64(CRL_RECORDS) - 1
    let oldest = newest > kept ? newest - kept : 1
    guard newest > loop.last else { return }
    if !isFirst {
      fill = max(fill, Double(newest - loop.last) / Double(CRL_RECORDS))
      if oldest > loop.last + 1 { loop.lost += Int(oldest - loop.last - 1) }
    }
    var number = max(oldest, loop.last + 1)
    while number <= newest {
      if let record = file.record(number, of: loop.slot) {
        if isSound(record) {
          if !isFirst || record.end >= start || record.end == 0 && isGoingOn(record, face, loop.slot) {
            keep(record, in: &loop)
          }
        } else {
          loop.torn += 1
        }
      } else if !isFirst {
        // The newest record may not have been written yet.
        if number == newest { break }
        loop.lost += 1
      }
      loop.last = number
      number += 1
    }
  }

  private func isSound(_ record: crl_record) -> Bool {
    record.begin != 0 && record.kind > 0 && record.kind < CRL_KINDS && (record.end == 0 || record.end >= record.begin)
  }

  /// Returns whether a record without an end is still in progress, rather than having lost its end.
  private func isGoingOn(_ record: crl_record, _ face: crl_face, _ slot: Int) -> Bool {
    if UInt32(record.kind) == CRL_KIND_RUN.rawValue { return UInt32(record.depth) <= face.depth }
    var number = face.open
    while number != 0 {
      if number == record.number { return true }
      guard let around = file.record(number, of: slot), around.outer != 0 else { return false }
      let low = UInt64(around.outer)
      number = number & ~0xffff_ffff | low
      if number >= around.number { number &-= 1 << 32 }
    }
    return false
  }

  private func keep(_ record: crl_record, in loop: inout Loop) {
    guard count < limit else {
      leftOut += 1
      return
    }
    count += 1
    let post = UInt32(record.kind) <= CRL_KIND_JOB.rawValue ? file.post(record.item, of: loop.slot) : nil
    if record.end == 0 { loop.open.append(loop.records.count) }
    loop.records.append((record, post))
  }

  /// Builds a timeline up to a given time, or up to the last record.
  package func finish(end: Int64? = nil, begin: Int64? = nil) -> Timeline {
    let clock = file.clock
    var lanes: [Timeline.Lane] = []
    var last = begin ?? 0
    let all = ended + loops.values.sorted { $0.slot < $1.slot }
    for loop in all {
      for (record, _) in loop.records { last = max(last, clock.nanoseconds(max(record.begin, record.end))) }
    }
    let end = end ?? last
    for loop in all where !loop.records.isEmpty {
      let isNow = loops[loop.slot]?.generation == loop.generation
      lanes.append(lane(loop, clock, until: end, face: isNow ? file.face(loop.slot) : nil))
    }
    lanes.sort { ($0.thread, $0.slot) < ($1.thread, $1.slot) }
    let first = lanes.compactMap { $0.items.first?.begin }.min() ?? end
    var timeline = Timeline(
      process: file.header.process, processName: processName, lanes: lanes, threads: [:], begin: begin ?? first,
      end: end)
    timeline.leftOut = leftOut
    let times = file.header.calibration.0
    if times.ticks != 0 { timeline.wallStart = times.wall.subtractingReportingOverflow(times.monotonic).partialValue }
    timeline.connect()
    let known = Set(lanes.map(\.thread))
    for edge in timeline.edges {
      if case .thread(let thread) = edge.from, !known.contains(thread), timeline.threads[thread] == nil {
        timeline.threads[thread] =
          thread == file.process ? "main" : target?.kernelName(ofThread: thread) ?? "thread \(thread)"
      }
    }
    return timeline
  }

  private var processName: String {
    guard let path = file.images.first?.path.split(separator: "/").last else { return "process" }
    return String(path)
  }

  private func lane(_ loop: Loop, _ clock: RecordClock, until end: Int64, face: crl_face?) -> Timeline.Lane {
    let open = Set(loop.open)
    var items: [Timeline.Item] = []
    items.reserveCapacity(loop.records.count)
    for (index, (record, post)) in loop.records.enumerated() {
      let goesOn = open.contains(index) && face.map { isGoingOn(record, $0, loop.slot) } ?? false
      items.append(item(record, post, clock, until: end, goesOn: goesOn))
    }
    var lane = Timeline.Lane(slot: loop.slot, thread: loop.thread, name: loop.name, items: items)
    lane.lost = loop.lost
    lane.torn = loop.torn
    lane.shares = shares[loop.thread]?.all ?? []
    lane.nest()
    return lane
  }

  private func item(
    _ record: crl_record, _ post: crl_post?, _ clock: RecordClock, until end: Int64, goesOn: Bool
  ) -> Timeline.Item {
    var item = Timeline.Item(
      number: record.number, outer: record.outer, kind: record.kind, mode: file.mode(record.mode), depth: record.depth,
      begin: clock.nanoseconds(record.begin), end: record.end == 0 ? end : clock.nanoseconds(record.end))
    item.isOpen = goesOn
    item.isEndLost = record.end == 0 && !goesOn
    if item.isSleep {
      item.cause = record.end == 0 ? nil : record.cause
      if Int32(record.flags) & Int32(CRL_RECORD_DESCRIPTOR) != 0 {
        item.descriptor = Int32(truncatingIfNeeded: record.item)
      }
    } else if item.isRun {
      item.site = record.code
    } else {
      item.code = record.code
      if let post {
        item.cause = post.cause
        item.posted = clock.nanoseconds(post.posted)
        item.site = post.site & ~(1 << 63)
        item.isAwaited = post.site & (1 << 63) != 0
      } else if Int32(record.flags) & Int32(CRL_RECORD_CAUSED) != 0 {
        item.cause = record.cause
        item.posted = clock.nanoseconds(record.posted)
        item.site = record.item
      }
    }
    return item
  }
}
