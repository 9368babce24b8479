// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore
import Synchronization

/// The records that this process's run loops make for external tools, and the recording level.
///
/// Every loop has a face in memory shared with the tool `runloop`, which shows whether the loop runs or sleeps, in
/// which mode, and how much work is waiting. A level adds more. It is set by the environment variable
/// `RUNLOOP_INSTRUMENTS` (`off`, `watch` or `record`), by ``hold(_:)``, and by the tool while it observes the process;
/// the highest wins. A loop adopts a new level at its next pass.
public enum Instruments {
  /// The amount of data that the loops record.
  public enum Level: Int32, Sendable, Comparable, CaseIterable {
    /// Only the faces.
    case off = 0
    /// Also the number and kind of the innermost call-out, which is enough to find a hang, and the sums of times for
    /// ``Instruments/metrics(of:)``.
    case watch = 1
    /// Also the last 2048 call-outs and sleeps of each loop with their times and code, and the last 4096 posts with
    /// the places that posted them.
    case record = 2

    /// Returns whether the first level records less than the second.
    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// Holds a level until ``LevelHolder/release()`` is called or the holder is released.
  ///
  /// The highest of all held levels applies. Can be called from any thread.
  ///
  /// - Parameter level: The minimum level of the loops. ``Level/off`` has no effect.
  public static func hold(_ level: Level) -> LevelHolder { LevelHolder(level) }

  /// The highest level that is held, which every loop adopts at its next pass; can be used from any thread.
  public static var level: Level { Level(rawValue: Int32(min(crl_level_get(), 2))) ?? .off }

  /// The directory with the records file of this process, or nil if it has none.
  ///
  /// The file exists from the first loop until the process exits; `runloop postmortem` reads the records of a process
  /// that was killed. Without a directory, the records are in private memory, which the tool reads if the kernel
  /// permits it. Can be used from any thread.
  public static var directory: String? { crl_instruments_directory().map { String(cString: $0) } }
}

/// A handle that holds a level of the instruments.
public final class LevelHolder: Sendable {
  /// The level that this holds.
  public let level: Instruments.Level
  private let isReleased = Atomic<Bool>(false)

  fileprivate init(_ level: Instruments.Level) {
    self.level = level
    crl_level_hold(UInt32(level.rawValue))
  }

  deinit { release() }

  /// Releases the level.
  ///
  /// Calling it again has no effect. Can be called from any thread.
  public func release() {
    if !isReleased.exchange(true, ordering: .acquiringAndReleasing) { crl_level_release(UInt32(level.rawValue)) }
  }
}
