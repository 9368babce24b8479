// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// The activity of a loop, in numbers.
///
/// Counts begin with the loop, at every level. Times are added up by the loop itself at the level
/// ``Instruments/Level/watch`` and above, so nothing is missed between readings, and they never decrease. They do not
/// advance at ``Instruments/Level/off``.
public struct LoopMetrics: Sendable, Hashable, Codable {
  /// The name of the loop.
  public let label: String
  /// The kernel's ID of the loop's thread.
  public let thread: Int32
  /// The number of times that the loop has slept or polled.
  public let waits: Int
  /// The number of blocks, jobs and hand-offs posted to the loop.
  public let posted: Int
  /// The number of blocks, jobs and hand-offs that are pending.
  public let waitingBlocks: Int
  /// The number of items that keep the loop's current mode alive.
  public let items: Int
  /// The number of blocks that the loop dropped because its thread ended.
  public let droppedBlocks: Int
  /// The number of items and blocks that the loop has rejected.
  public let refusals: Int
  /// The number of wake-ups saved by the tolerances of timers.
  public let savedWakeUps: Int
  /// The durations of call-outs, including those with nested runs.
  public let callOuts: Histogram
  /// The waiting times of blocks, jobs and handed-off work before their call, while the loop recorded.
  public let delays: Histogram
  /// How late timers fired, beyond their dates and tolerances.
  public let lateness: Histogram
  /// The number of call-outs that took 250 ms or longer, as `runloop` counts hangs.
  ///
  /// If a nested run begins in a call-out, or a source is scheduled or cancelled in it, the part before that counts
  /// separately. A hang is counted when it is over; ``openCallOut`` shows one that is still in progress.
  public let hangs: Int
  /// The time that the loop spent running rather than sleeping, in nanoseconds.
  ///
  /// A guest that has work to do also counts as running between two services.
  public let busyTime: Int64
  /// How long the innermost call-out has been running without a nested run, in nanoseconds, or nil if none is open.
  public let openCallOut: Int64?
  /// The fraction of time in the last 2048 records in which the loop did not sleep, or nil without records.
  public let busy: Double?
}

extension Instruments {
  /// Returns the metrics of a loop, or nil if its thread has ended.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n) in the number of records, of which at most 2048 are kept.
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

/// Converts the ticks of records to nanoseconds of the monotonic clock.
struct TickClock {
  private let first = crl_times_first()
  private let last = crl_times_now()

  var now: Int64 { last.monotonic }

  func nanoseconds(_ ticks: UInt64) -> Int64 {
    let span = Double(last.ticks) - Double(first.ticks)
    let rate = span > 0 ? Double(last.monotonic - first.monotonic) / span : 1
    return last.monotonic - Int64(Double(Int64(bitPattern: last.ticks &- ticks)) * rate)
  }

  /// The tick count at a number of nanoseconds before now.
  func ticks(before nanoseconds: Int64) -> UInt64 {
    let span = Double(last.monotonic) - Double(first.monotonic)
    let rate = span > 0 ? (Double(last.ticks) - Double(first.ticks)) / span : 1
    let distance = Double(max(0, nanoseconds)) * rate
    return distance >= Double(last.ticks) ? 0 : last.ticks - UInt64(distance)
  }
}
