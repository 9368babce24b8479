// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import Testing
import TestSupport

/// What a loop says of items of Foundation's loop that nobody serves while it sleeps.
@Suite("A loop that sleeps beside items of Foundation's", .timeLimit(.minutes(20)))
struct UnservedItemsTests {
  // M33
  @Test("on another thread than the main one it says so, once for each loop")
  func once() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<2 {
        onNewThread {
          foundationTimer(after: 1000) { _ in }
          RunLoop.current.keepAlive()
          RunLoop.current.run(mode: .default, for: .milliseconds(1))
          RunLoop.current.run(mode: .default, for: .milliseconds(1))
        }
      }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.split(separator: "\n").count { $0.contains("has items in the mode") } == 2, "\(text)")
  }

  // M33
  @Test("nothing is said of a loop that has none, that is served, or that has them in another mode")
  func silent() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      onNewThread {
        RunLoop.current.keepAlive()
        RunLoop.current.run(mode: .default, for: .milliseconds(1))
      }
      onNewThread {
        foundationTimer(after: 1000, mode: .init("other")) { _ in }
        RunLoop.current.keepAlive()
        RunLoop.current.run(mode: .default, for: .milliseconds(1))
      }
      _ = hosted { rig in
        foundationTimer(after: 1000) { _ in }
        rig.keepAlive()
        rig.run(for: .milliseconds(1))
      }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(!text.contains("has items in the mode"), "\(text)")
  }
}
