// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore

/// What a loop has done, in numbers.
///
/// What is counted is counted from the loop's beginning, at every level. What is measured is of the last call-outs and sleeps
/// that are recorded, 2048 at most, and empty unless the loop is at the level ``Instruments/Level/record``: measuring more
/// would cost every call-out something.
public struct LoopMetrics: Sendable, Hashable, Codable {
  /// What the loop is called.
  public var label: String
  /// The kernel's number of the loop's thread.
  public var thread: Int32
  /// How many times it has slept or looked for something to do.
  public var waits: Int
  /// How many blocks, jobs and hand-offs it was given.
  public var posted: Int
  /// How many of them wait.
  public var waitingBlocks: Int
  /// How many items keep the mode alive that it runs in.
  public var items: Int
  /// How many blocks it has dropped, as its thread ended.
  public var droppedBlocks: Int
  /// How many items and blocks it has rejected.
  public var refusals: Int
  /// How many wake-ups the tolerances of timers have saved.
  public var savedWakeUps: Int
  /// How long call-outs took, those that runs were nested in included.
  public var callOuts: Histogram
  /// How long blocks, jobs and handed-over work have waited until they were called.
  public var delays: Histogram
  /// The part of the time that is recorded in which the loop did not sleep, between zero and one; nil: nothing is recorded.
  public var busy: Double?
}

extension Instruments {
  /// The numbers of a loop; nil if its thread has ended.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n) in the records that are kept, 2048 at most.
  public static func metrics(of loop: RunLoop) -> LoopMetrics? {
    guard !loop.takesNoItems else { return nil }
    let face = loop.faceReading
    let statistics = loop.statistics
    let measured = RecordedTimes(loop)
    return LoopMetrics(
      label: loop.label ?? loop.nameOfThread ?? "\(loop.threadID)", thread: loop.threadID,
      waits: Int(truncatingIfNeeded: face.waits), posted: Int(truncatingIfNeeded: face.posted),
      waitingBlocks: face.waitingBlocks, items: loop.keptItems.count, droppedBlocks: statistics.droppedBlocks,
      refusals: statistics.refusals, savedWakeUps: statistics.savedWakeUps, callOuts: measured.callOuts,
      delays: measured.delays, busy: measured.busy)
  }
}

/// What the records of a loop say about times.
private struct RecordedTimes {
  private(set) var callOuts = Histogram()
  private(set) var delays = Histogram()
  private(set) var busy: Double?

  init(_ loop: RunLoop) {
    let records = loop.recordedCallOuts
    guard !records.isEmpty else { return }
    let clock = TickClock()
    let now = clock.now
    var first = now
    var asleep: Int64 = 0
    for record in records {
      let begin = clock.nanoseconds(record.begin)
      let end = record.end == 0 ? now : clock.nanoseconds(record.end)
      first = min(first, begin)
      guard record.kind != UInt8(CRL_KIND_SLEEP.rawValue) else {
        asleep += max(0, end - begin)
        continue
      }
      // What goes on has no length yet; what is no call-out is no work.
      if record.end != 0, record.kind < UInt8(CRL_KIND_HOST.rawValue) { callOuts.add(end - begin) }
      if record.kind <= UInt8(CRL_KIND_JOB.rawValue), let posted = loop.posted(record) {
        delays.add(begin - clock.nanoseconds(posted))
      }
    }
    if now > first { busy = min(1, max(0, 1 - Double(asleep) / Double(now - first))) }
  }
}

/// Turns the ticks of records into nanoseconds of the monotonic clock.
struct TickClock {
  private let first = crl_times_first()
  private let last = crl_times_now()

  var now: Int64 { last.monotonic }

  func nanoseconds(_ ticks: UInt64) -> Int64 {
    let span = Double(last.ticks) - Double(first.ticks)
    let rate = span > 0 ? Double(last.monotonic - first.monotonic) / span : 1
    return last.monotonic - Int64(Double(Int64(bitPattern: last.ticks &- ticks)) * rate)
  }

  /// The tick at which it was so many nanoseconds earlier.
  func ticks(before nanoseconds: Int64) -> UInt64 {
    let span = Double(last.monotonic) - Double(first.monotonic)
    let rate = span > 0 ? (Double(last.ticks) - Double(first.ticks)) / span : 1
    let distance = Double(max(0, nanoseconds)) * rate
    return distance >= Double(last.ticks) ? 0 : last.ticks - UInt64(distance)
  }
}
