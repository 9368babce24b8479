// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopInstruments
import RunLoopLibC

/// A part of a file that a process has mapped.
struct MappedFile {
  let range: Range<UInt64>
  let offset: UInt64
  /// The path, with the kernel's mark if the file was deleted.
  let path: String

  var isDeleted: Bool { path.hasSuffix(CodeImage.deletedMark) }
  /// The path without the mark.
  var name: String { isDeleted ? String(path.dropLast(CodeImage.deletedMark.count)) : path }

  /// Lists what a process has mapped, in the order of the addresses, without files that exist in memory only.
  static func all(of process: Int32) -> [MappedFile] {
    (readWhole("/proc/\(process)/maps") ?? "").split(separator: "\n").compactMap { line in
      let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
      guard fields.count == 6, let offset = UInt64(fields[2], radix: 16) else { return nil }
      let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      let path = String(fields[5].drop { $0 == " " })
      guard ends.count == 2, ends[0] < ends[1], path.hasPrefix("/"), !path.hasPrefix("/memfd:") else { return nil }
      return MappedFile(range: ends[0]..<ends[1], offset: offset, path: path)
    }
  }
}

/// The files of a process's program and libraries that were deleted or replaced since they were loaded.
///
/// They are read through links of the kernel, which exist as long as the process does.
struct DeletedFiles {
  /// The links, by the paths that the files had.
  let links: [String: String]

  init(of process: Int32) { self.init(of: process, MappedFile.all(of: process)) }

  init(of process: Int32, _ mapped: [MappedFile]) {
    var links: [String: String] = [:]
    let program = ProcFile.link("/proc/\(process)/exe")
    for file in mapped where file.isDeleted && links[file.name] == nil {
      if file.path == program {
        links[file.name] = "/proc/\(process)/exe"
        continue
      }
      // The links of libraries need a capability.
      let range = "\(String(file.range.lowerBound, radix: 16))-\(String(file.range.upperBound, radix: 16))"
      let link = "/proc/\(process)/map_files/\(range)"
      var status = stat()
      if stat(link, &status) == 0 { links[file.name] = link }
    }
    self.links = links
  }

  /// The path that a file had, without the mark of a deleted one, if it is one of these links.
  static func path(of link: String) -> String? {
    guard link.hasPrefix("/proc/"), let target = ProcFile.link(link) else { return nil }
    return target.hasSuffix(CodeImage.deletedMark) ? String(target.dropLast(CodeImage.deletedMark.count)) : target
  }
}
