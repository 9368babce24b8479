// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopToolKit
import RunLoopLibC

/// The records of a process without a file, read from its memory, which requires a debugger's permission.
package final class RemoteRecords {
  package let process: Int32
  package let base: UInt64

  /// Finds the records in the memory map of a process; fails if there are none.
  package init?(process: Int32) {
    guard let maps = readWhole("/proc/\(process)/maps") else { return nil }
    let large = maps.split(separator: "\n").first { line in
      line.contains("/memfd:runloop-rings") && line.split(separator: " ").dropFirst(2).first == "00000000"
        && RemoteRecords.span(line).map { $0.1 - $0.0 > 1 << 20 } ?? false
    }
    guard let large, let span = RemoteRecords.span(large) else { return nil }
    self.process = process
    base = span.0
  }

  private static func span(_ line: Substring) -> (UInt64, UInt64)? {
    let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
    return ends.count == 2 ? (ends[0], ends[1]) : nil
  }

  private func read(_ offset: Int, _ count: Int, into memory: UnsafeMutableRawPointer) throws(RecordError) {
    let answer = crlt_read(process, base + UInt64(offset), memory + offset, count)
    guard answer != count else { return }
    throw RecordError(RemoteRecords.complaint(process, Int32(answer < 0 ? -answer : Int(EFAULT))))
  }

  static func complaint(_ process: Int32, _ number: Int32) -> String {
    if number == EPERM {
      return "the memory of process \(process) may not be read: the kernel allows it for children only, unless "
        + "/proc/sys/kernel/yama/ptrace_scope is 0"
    }
    return "the memory of process \(process) cannot be read: \(String(cString: strerror(number)))"
  }

  /// Copies the parts in use.
  func copy(into memory: UnsafeMutableRawPointer) throws(RecordError) {
    try read(0, MemoryLayout<crl_header>.size, into: memory)
    let header = memory.load(as: crl_header.self)
    guard RecordLayout.isKept(by: header) else { return }
    let faces = Int(min(header.used_faces, UInt32(CRL_FACES)))
    try read(RecordLayout.faces, faces * MemoryLayout<crl_face>.size, into: memory)
    try read(RecordLayout.details, faces * MemoryLayout<crl_details>.size, into: memory)
    try read(RecordLayout.modes, RecordLayout.rings - RecordLayout.modes, into: memory)
    let size = Int(CRL_RING_SIZE)
    for slot in 0..<min(faces, Int(CRL_RINGS)) {
      let place = memory + RecordLayout.faces + slot * MemoryLayout<crl_face>.size
      let face = place.load(as: crl_face.self)
      if face.generation > 0, face.level >= CRL_RECORD.rawValue {
        try read(RecordLayout.rings + slot * size, size, into: memory)
      }
    }
  }

  /// Writes the level and its holders.
  func write(_ header: UnsafeMutablePointer<crl_header>) throws(RecordError) {
    let bytes = UnsafeRawPointer(header)
    guard let holders = MemoryLayout<crl_header>.offset(of: \.holders),
      let level = MemoryLayout<crl_header>.offset(of: \.level),
      let raised = MemoryLayout<crl_header>.offset(of: \.raised)
    else { return }
    for (offset, count) in [(holders, MemoryLayout<crl_holder>.size * Int(CRL_HOLDERS)), (raised, 4), (level, 4)] {
      let answer = crlt_write(process, base + UInt64(offset), bytes + offset, count)
      guard answer == count else { throw RecordError(RemoteRecords.complaint(process, Int32(-answer))) }
    }
  }
}

/// Returns the contents of a file in `/proc`, or nil if it cannot be read.
package func readWhole(_ path: String) -> String? {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return nil }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65536)
  // A process can make some of these files arbitrarily long.
  while bytes.count < 64 << 20 {
    let count = RunLoopLibC.read(descriptor, &chunk, chunk.count)
    if count < 0, errno == EINTR { continue }
    guard count > 0 else { return count < 0 ? nil : String(decoding: bytes, as: UTF8.self) }
    bytes += chunk[..<count]
  }
  return nil
}
