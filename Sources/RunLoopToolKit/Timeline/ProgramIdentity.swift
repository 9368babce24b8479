// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// Detects whether a process has executed another program.
struct ProgramIdentity: Sendable {
  private let process: Int32
  private let vector: [UInt8]?

  init(_ process: Int32) {
    self.process = process
    vector = ProgramIdentity.read(process)
  }

  // The auxiliary vector contains addresses that differ each time a program starts.
  private static func read(_ process: Int32) -> [UInt8]? {
    let descriptor = open("/proc/\(process)/auxv", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = RunLoopLibC.read(descriptor, &bytes, bytes.count)
    return count > 0 ? Array(bytes[..<count]) : nil
  }

  var isSame: Bool { vector == nil || ProgramIdentity.read(process) == vector }
}
