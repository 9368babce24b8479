// SPDX-License-Identifier: Apache-2.0

import Glibc
@testable import RunLoopCore
import TestRules
import TestSupport
import Testing

/// A loop of runs in an empty mode, which uses a whole processor.
@Suite("Runs of an empty mode", .timeLimit(.minutes(20)))
struct EmptyRunTests {
  @Test("ten thousand in a row are reported, once, and one that has anything to run begins a new row", .rule(.r17))
  func reported() async {
    await #expect(processExitsWith: .success) {
      @Sendable func runs(_ count: Int) {
        for _ in 0..<count { RunLoop.current.run(mode: .default, for: .seconds(1000)) }
      }
      onNewThread {
        runs(9_999)
        guard Diagnostic.emptyRuns.count == 0 else { exit(2) }
        RunLoop.current.perform {}
        RunLoop.current.run(mode: .default, for: .zero)
        runs(9_999)
        guard Diagnostic.emptyRuns.count == 0 else { exit(3) }
        runs(1)
        guard Diagnostic.emptyRuns.count == 1 else { exit(4) }
        runs(20_000)
        guard Diagnostic.emptyRuns.count == 1 else { exit(5) }
      }
    }
  }
}

/// Runs the calling thread's loop in the empty default mode.
private func runs(_ count: Int) {
  for _ in 0..<count { RunLoop.current.run(mode: .default, for: .seconds(1000)) }
}
