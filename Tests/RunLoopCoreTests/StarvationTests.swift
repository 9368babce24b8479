// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("How long a descriptor may have been ready before its loop looked")
struct StarvationTests {
  @Test("a nested run looks too, so that the outer run knows nothing")
  func nested() throws {
    let pipe = try RawPipe()
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.isTraced = true
      loop.watch(pipe.reading) { _, _ in
        _ = pipe.read()
        loop.stop()
      }
      loop.add(
        RunLoop.Observer(activities: .afterWaiting) { _, _ in log.write("\(loop.innermost.starvation)") },
        forMode: .default)
      // The look at the first wait is followed by ten seconds in which the nested run looks.
      loop.after(.seconds(1)) { _ in
        loop.run(mode: .default, for: .seconds(10))
        pipe.write()
      }
      loop.runUntilStopped()
      return log.text
    }
    #expect(Set(log.split(separator: " ")) == ["0"])
  }

  @Test("a structure of another size than a closure has no code, and ends nothing")
  func code() {
    struct One { let call: @Sendable () -> Void }
    struct Two {
      let call: @Sendable () -> Void
      let other: (@Sendable () -> Void)?
    }
    #expect(ClosureCode.first(of: One {}) != 0)
    #expect(ClosureCode.first(of: Two(call: {}, other: nil)) == 0)
  }
}
