// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import CRunLoopTools
import RunLoopLibC

/// Holds a level of another process while a tool looks.
///
/// The holders stand in the header, with the number of each tool. A signal that ends the tool frees its place; that of
/// one that was killed is freed by the next, or by the process.
package final class LevelHold {
  private let file: RecordFile
  private var place: Int?
  private var process: Int32 = 0
  /// Where it stands among what a signal lets go of.
  private let guardPlace: Int32

  package init(_ file: RecordFile, _ level: UInt32) throws(RecordError) {
    self.file = file
    guard file.header.is_apart == 0 else {
      throw RecordError(
        "process \(file.header.process) cannot be asked to record from outside: its pages of \(file.header.page_size) "
          + "bytes are larger than its header. Start it with RUNLOOP_INSTRUMENTS=record")
    }
    let start = TargetProcess.start(of: getpid()) ?? 0
    // Nobody knows the processes of another namespace by their numbers.
    let isElsewhere = TargetProcess.namespace != file.header.pid_namespace
    let own = isElsewhere ? -getpid() : getpid()
    var taken: Int?
    guardPlace = file.guardLevel()
    do throws(RecordError) {
      try file.changeHeader { header in
        withUnsafeMutablePointer(to: &header.pointee.holders) { holders in
          holders.withMemoryRebound(to: crl_holder.self, capacity: Int(CRL_HOLDERS)) { holders in
            _ = crl_holders_drop_ended(header, isElsewhere ? 1 : 0)
            for index in 0..<Int(CRL_HOLDERS) where crl_holder_take(holders + index, own, start, level) != 0 {
              taken = index
              break
            }
          }
        }
        crl_level_settle(header)
      }
    } catch {
      crlt_level_unguard(guardPlace)
      throw error
    }
    process = own
    place = taken
    guard taken != nil else {
      crlt_level_unguard(guardPlace)
      throw RecordError("\(CRL_HOLDERS) tools look at the process already")
    }
  }

  /// Lets the level be what the others hold.
  package func release() {
    guard let place else { return }
    self.place = nil
    try? file.changeHeader { header in
      withUnsafeMutablePointer(to: &header.pointee.holders) { holders in
        holders.withMemoryRebound(to: crl_holder.self, capacity: Int(CRL_HOLDERS)) {
          _ = crl_holder_free($0 + place, process)
        }
      }
      crl_level_settle(header)
    }
    crlt_level_unguard(guardPlace)
  }

  deinit { release() }
}
