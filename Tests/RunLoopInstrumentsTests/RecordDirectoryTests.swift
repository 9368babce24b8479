// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopToolKit
import Testing

@Suite("Where records are") struct RecordDirectoryTests {
  @Test("the session directory is used if its files are in memory, for the tool as for the processes")
  func runtimeDirectory() async {
    await #expect(processExitsWith: .success) {
      unsetenv("RUNLOOP_DIR")
      setenv("XDG_RUNTIME_DIR", "/proc", 1)
      #expect(RecordDirectory.own == ["/dev/shm/runloop-\(geteuid())"])
      setenv("XDG_RUNTIME_DIR", "/dev/shm", 1)
      #expect(RecordDirectory.own == ["/dev/shm/runloop-instruments", "/dev/shm/runloop-\(geteuid())"])
    }
  }
}
