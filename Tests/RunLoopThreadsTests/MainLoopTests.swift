// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopThreads

@Suite("The main loop as a program", .timeLimit(.minutes(20)))
struct MainLoopTests {
  // Serving the main actor is tested in a separate program, because no test runs on the main thread.
  @Test("MainLoop.run on another thread than the main one stops the process with a message")
  func otherThread() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      MainLoop.run {}
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("needs the main thread"))
  }
}
