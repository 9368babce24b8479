// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopToolKit
import Testing

@Suite("The symbolizer") struct ExternalSymbolizerTests {
  @Test("the tool waits for the symbolizer only as long as it runs, whatever else the process starts")
  func otherChildren() async {
    await #expect(processExitsWith: .success) {
      // An endless wait should fail the test.
      alarm(900)
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
      defer { try? FileManager.default.removeItem(at: folder) }
      let program = folder.appendingPathComponent("llvm-symbolizer")
      try Data("#!/bin/sh\nprintf 'name\\nfile.swift:7:1\\n\\n'\n".utf8).write(to: program)
      chmod(program.path, 0o700)
      setenv("PATH", folder.path, 1)
      let symbolizer = ExternalSymbolizer()
      try #require(symbolizer.isThere)
      // Children that outlive any endless wait, and inherit whatever is open when they start.
      let starter = Foundation.Thread {
        for _ in 0..<200 {
          var child = pid_t()
          var words: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("1000"), nil]
          if posix_spawn(&child, "/bin/sleep", nil, nil, &words, environ) == 0 { children.append(child) }
          for word in words { free(word) }
        }
        hasStarted.signal()
      }
      starter.start()
      for _ in 0..<100 {
        #expect(symbolizer.frames(ofSymbol: "name", in: "/bin/sh").first?.line == 7)
      }
      hasStarted.wait()
      for child in children { kill(child, SIGKILL) }
    }
  }
}

// Written by the thread that starts children, and read once it has finished.
nonisolated(unsafe) private var children: [pid_t] = []
private let hasStarted = DispatchSemaphore(value: 0)
