// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopInstruments
import RunLoopLibC

/// The files of a process's program and libraries that were deleted or replaced since they were loaded.
///
/// They are read through links of the kernel, which exist as long as the process does.
struct DeletedFiles {
  /// The ending of a deleted file's path in the kernel's lists.
  static let mark = " (deleted)"

  /// The links, by the paths that the files had.
  let links: [String: String]

  init(of process: Int32) {
    var links: [String: String] = [:]
    let program = ProcFile.link("/proc/\(process)/exe")
    for line in (readWhole("/proc/\(process)/maps") ?? "").split(separator: "\n") where line.hasSuffix(Self.mark) {
      let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
      guard fields.count == 6 else { continue }
      let name = String(fields[5].drop { $0 == " " })
      let path = String(name.dropLast(Self.mark.count))
      let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard path.hasPrefix("/"), !path.hasPrefix("/memfd:"), links[path] == nil, ends.count == 2 else { continue }
      if name == program {
        links[path] = "/proc/\(process)/exe"
        continue
      }
      // The links of libraries need a capability.
      let link = "/proc/\(process)/map_files/\(String(ends[0], radix: 16))-\(String(ends[1], radix: 16))"
      var status = stat()
      if stat(link, &status) == 0 { links[path] = link }
    }
    self.links = links
  }

  /// The path that a file had, without the mark of a deleted one, if it is one of these links.
  static func path(of link: String) -> String? {
    guard link.hasPrefix("/proc/"), let target = ProcFile.link(link) else { return nil }
    return target.hasSuffix(mark) ? String(target.dropLast(mark.count)) : target
  }
}
