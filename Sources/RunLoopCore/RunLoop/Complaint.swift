// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// What the loops say on the standard error, each once in a process: a mistake that a spelling without errors cannot throw.
package enum Complaint {
  package static let foreignRun = Once()
  package static let commonRun = Once()
  package static let boundItem = Once()
  package static let endedLoop = Once()
  package static let mainThreadHasLeft = Once()
  package static let noMode = Once()
  package static let mainQueue = Once()
  package static let foreignQueue = Once()
  package static let gate = Once()
  package static let portComponent = Once()
  package static let coreFoundation = Once()
  package static let sleepless = Once()
  package static let unservedItems = Once()

  package final class Once: Sendable {
    private let isDone = Atomic<Bool>(false)

    package func report(_ message: @autoclosure () -> String) {
      guard !isDone.exchange(true, ordering: .relaxed) else { return }
      var line = "RunLoopKit: \(message())\n"
      line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
  }
}

/// A thread's name and id, for messages.
func threadName(_ id: Int32) -> String {
  let file = fopen("/proc/self/task/\(id)/comm", "r")
  guard let file else { return "\(id), which has ended" }
  defer { _ = fclose(file) }
  var name: [CChar] = Array(repeating: 0, count: 64)
  guard fgets(&name, 64, file) != nil else { return "\(id)" }
  let bytes = name.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
  return "\(id) \"\(String(decoding: bytes, as: UTF8.self))\""
}
