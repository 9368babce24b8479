// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopToolKit
import RunLoopLibC

/// Holds a level of another process while the tool observes it.
///
/// The header lists the holders with the IDs of their processes. A signal that ends the tool releases its place; the
/// place of a killed tool is released by the next tool or by the process.
package final class LevelHold {
  private let file: RecordFile
  private var place: Int32?
  private var process: Int32 = 0
  /// The index among the holds that a signal releases.
  private let guardPlace: Int32

  package init(_ file: RecordFile, _ level: UInt32) throws(RecordError) {
    self.file = file
    guard file.header.is_apart == 0 else {
      throw RecordError(
        "process \(file.header.process) cannot be asked to record from outside: its pages of \(file.header.page_size) "
          + "bytes are larger than its header. Start it with RUNLOOP_INSTRUMENTS=record")
    }
    let start = TargetProcess.start(of: getpid()) ?? 0
    // A process ID is meaningless in another namespace.
    let isElsewhere = TargetProcess.namespace != file.header.pid_namespace
    let own = isElsewhere ? -getpid() : getpid()
    let taken: Int32
    guardPlace = file.guardLevel()
    do throws(RecordError) {
      taken = try file.changeHeader { crlt_hold_take($0, own, start, level, isElsewhere ? 1 : 0) }
    } catch {
      crlt_level_unguard(guardPlace)
      throw error
    }
    process = own
    place = taken >= 0 ? taken : nil
    guard taken >= 0 else {
      crlt_level_unguard(guardPlace)
      throw RecordError("\(CRL_HOLDERS) tools look at the process already")
    }
  }

  /// Releases the level.
  package func release() {
    guard let place else { return }
    self.place = nil
    // A truncated file holds no level.
    _ = try? file.changeHeader { crlt_hold_free($0, place, process) }
    crlt_level_unguard(guardPlace)
  }

  deinit { release() }
}
