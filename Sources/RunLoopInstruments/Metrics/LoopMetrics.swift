// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// The activity of a loop, in numbers.
///
/// Counts are from the loop's beginning, at every level. Times are summed up by the loop itself from the level
/// ``Instruments/Level/watch`` on: nothing is missed, however seldom the numbers are read, and they only ever become
/// more. At the level ``Instruments/Level/off`` they stand still.
public struct LoopMetrics: Sendable, Hashable, Codable {
  /// The name of the loop.
  public let label: String
  /// The kernel's number of the loop's thread.
  public let thread: Int32
  /// How many times it has slept or looked for something to do.
  public let waits: Int
  /// How many blocks, jobs and hand-offs were posted to it.
  public let posted: Int
  /// How many of them wait.
  public let waitingBlocks: Int
  /// How many items keep the mode alive that it runs in.
  public let items: Int
  /// How many blocks it has dropped, because its thread ended.
  public let droppedBlocks: Int
  /// How many items and blocks it has rejected.
  public let refusals: Int
  /// How many wake-ups the tolerances of timers have saved.
  public let savedWakeUps: Int
  /// How long call-outs took, including those in which runs were nested.
  public let callOuts: Histogram
  /// How long blocks, jobs and handed-over work waited until they were called, while the loop recorded.
  public let delays: Histogram
  /// By how much timers fired later than their dates and tolerances.
  public let lateness: Histogram
  /// How many call-outs took 250 ms or longer, as `runloop` counts hangs.
  ///
  /// A part of a call-out that takes that long counts when it is over: at the end of the call-out, or when a nested
  /// run, or a function of a source that is scheduled or cancelled, begins in it. ``openCallOut`` shows one that lasts.
  public let hangs: Int
  /// For how long it ran and did not sleep, in nanoseconds.
  ///
  /// A guest that has something to do runs between two services, too.
  public let busyTime: Int64
  /// For how long the innermost call-out has lasted, or gone on after a nested run, in nanoseconds; nil if none is
  /// open.
  public let openCallOut: Int64?
  /// The part of the time of the last 2048 records in which the loop did not sleep, between zero and one; nil if there
  /// are no records.
  public let busy: Double?
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
    let sums = loop.sums
    return LoopMetrics(
      label: loop.label ?? loop.nameOfThread ?? "\(loop.threadID)", thread: loop.threadID,
      waits: Int(truncatingIfNeeded: face.waits), posted: Int(truncatingIfNeeded: face.posted),
      waitingBlocks: face.waitingBlocks, items: loop.keptItems.count, droppedBlocks: statistics.droppedBlockCount,
      refusals: statistics.rejectionCount, savedWakeUps: statistics.savedWakeUpCount,
      callOuts: Histogram(sums.call_outs), delays: Histogram(sums.delays), lateness: Histogram(sums.lateness),
      hangs: Int(clamping: sums.hangs),
      busyTime: crl_sums.nanoseconds(sums.busy), openCallOut: sums.open, busy: RecordedTimes.busy(of: loop))
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
