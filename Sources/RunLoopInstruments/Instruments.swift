// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore
import Synchronization

/// The records that the run loops of this process leave for tools outside, and how much they record.
///
/// Every loop has a face in memory that is shared with the tool `runloop`: whether it runs and sleeps, in which mode,
/// and how much work waits. A level adds to that. The level is set by the environment variable `RUNLOOP_INSTRUMENTS`
/// (`off`, `watch` or `record`), by ``hold(_:)``, and by the tool while it looks; the highest counts. A loop takes up a
/// level at its next pass.
public enum Instruments {
  /// How much the loops record.
  public enum Level: Int32, Sendable, Comparable, CaseIterable {
    /// The faces only.
    case off = 0
    /// Also the number and kind of the innermost call-out, which is enough to find a hang, and what the loop sums up of
    /// its times for ``Instruments/metrics(of:)``.
    case watch = 1
    /// The last 2048 call-outs and sleeps of each loop with their times and code, and the last 4096 posts with the
    /// places that they come from.
    case record = 2

    /// Whether the first records less.
    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// Holds a level until ``LevelHolder/release()`` is called, or the holder no longer exists.
  ///
  /// Of all levels that are held, the highest counts. Can be called from any thread.
  ///
  /// - Parameter level: The level that the loops have at least. ``Level/off`` changes nothing.
  public static func hold(_ level: Level) -> LevelHolder { LevelHolder(level) }

  /// The highest level that is held, which every loop takes up at its next pass.
  ///
  /// Can be used from any thread.
  public static var level: Level { Level(rawValue: Int32(min(crl_level_get(), 2))) ?? .off }

  /// The directory with the file of this process, or nil if it has none.
  ///
  /// The file exists from the first loop on until the process exits; the records of a process that was killed can be
  /// read with `runloop postmortem`. Without a directory the records are in memory that the tool reads if the kernel
  /// permits it. Can be used from any thread.
  public static var directory: String? { crl_instruments_directory().map { String(cString: $0) } }
}

/// Holds a level of the instruments.
public final class LevelHolder: Sendable {
  /// The level.
  public let level: Instruments.Level
  private let isReleased = Atomic<Bool>(false)

  fileprivate init(_ level: Instruments.Level) {
    self.level = level
    crl_level_hold(UInt32(level.rawValue))
  }

  deinit { release() }

  /// No longer holds the level.
  ///
  /// Calling it again has no effect. Can be called from any thread.
  public func release() {
    if !isReleased.exchange(true, ordering: .acquiringAndReleasing) { crl_level_release(UInt32(level.rawValue)) }
  }
}
