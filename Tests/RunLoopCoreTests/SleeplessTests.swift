// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A loop that never sleeps")
struct SleeplessTests {
  /// Runs a loop whose observer posts before `count` waits, and returns the number of its passes.
  private static func passes(posting count: Int) -> Int {
    onVirtualTime { _, loop in
      let waits = Counter()
      loop.keepAlive()
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting) { _, _ in
          waits.add()
          if waits.value <= count { loop.perform {} }
        }, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return waits.value
    }
  }

  private static func reports(_ error: [UInt8]) -> Int {
    String(decoding: error, as: UTF8.self).split(separator: "\n").count { $0.contains("the loop never sleeps") }
  }

  @Test("an observer that posts work before each of 10,000 waits is reported, once for each run", .rule(.m1))
  func reported() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      #expect(SleeplessTests.passes(posting: 10_000) == 10_001)
      #expect(SleeplessTests.passes(posting: 10_000) == 10_001)
    }
    #expect(SleeplessTests.reports(try #require(result).standardErrorContent) == 2)
  }

  @Test("an observer that stops posting in time is not reported", .rule(.m1))
  func notReported() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      #expect(SleeplessTests.passes(posting: 9_999) == 10_000)
    }
    #expect(SleeplessTests.reports(try #require(result).standardErrorContent) == 0)
  }
}
