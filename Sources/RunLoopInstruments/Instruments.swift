// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import Synchronization

/// What the run loops of this process leave behind for those who look at them from outside, and how much of it.
///
/// Every loop has a face in memory that is shared with the tool `runloop`: whether it runs and sleeps, in which mode,
/// and how much work waits. A level adds to that. It is set by the environment variable `RUNLOOP_INSTRUMENTS` (`off`,
/// `watch` or `record`), by ``hold(_:)``, and by the tool while it looks; the highest counts. A loop takes a level up
/// at its next pass.
public enum Instruments {
  /// How much the loops leave behind.
  public enum Level: Int32, Sendable, Comparable, CaseIterable {
    /// The faces only.
    case off = 0
    /// The number and kind of the innermost call-out too, without the time: enough to find a hang.
    case watch = 1
    /// The last 2048 call-outs and sleeps of each loop with their times and code, and the last 4096 posts with the
    /// places that they come from.
    case record = 2

    /// Whether the first leaves less behind.
    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// Holds a level until the holder is released or goes.
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
  /// The file is there from the first loop on until the process exits; what is left of a process that is killed can be
  /// read with `runloop postmortem`. Without a directory the records are in memory that the tool reads by the kernel's
  /// leave. Can be used from any thread.
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

  /// Holds the level no more.
  ///
  /// Calling it again has no effect. Can be called from any thread.
  public func release() {
    if !isReleased.exchange(true, ordering: .acquiringAndReleasing) { crl_level_release(UInt32(level.rawValue)) }
  }
}
