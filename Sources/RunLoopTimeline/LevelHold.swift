// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc

/// Holds a level of another process while a tool looks.
///
/// The holders stand in the header, with the number of each tool; those of tools that have been killed are taken away by the
/// next.
package final class LevelHold {
  private let file: RecordFile
  private var place: Int?

  package init(_ file: RecordFile, _ level: UInt32) throws(RecordError) {
    self.file = file
    let own = getpid()
    let start = TargetProcess.start(of: own) ?? 0
    var taken: Int?
    try file.changeHeader { header in
      withUnsafeMutablePointer(to: &header.pointee.holders) { holders in
        holders.withMemoryRebound(to: crl_holder.self, capacity: Int(CRL_HOLDERS)) { holders in
          for index in 0..<Int(CRL_HOLDERS) {
            let holder = holders + index
            let isLeft =
              holder.pointee.process != 0 && TargetProcess.start(of: holder.pointee.process) != holder.pointee.start
            if isLeft { holder.pointee.process = 0 }
          }
          for index in 0..<Int(CRL_HOLDERS) where crl_holder_take(holders + index, own, start, level) != 0 {
            taken = index
            break
          }
        }
      }
      crl_level_settle(header)
    }
    place = taken
    guard taken != nil else { throw RecordError("\(CRL_HOLDERS) tools look at the process already") }
  }

  /// Lets the level be what the others hold.
  package func release() {
    guard let place else { return }
    self.place = nil
    try? file.changeHeader { header in
      withUnsafeMutablePointer(to: &header.pointee.holders) { holders in
        holders.withMemoryRebound(to: crl_holder.self, capacity: Int(CRL_HOLDERS)) { $0[place].process = 0 }
      }
      crl_level_settle(header)
    }
  }

  deinit { release() }
}
