// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("The loop of the articles, and what is handed to its thread")
struct HandOffIdiomTests {
  @Test(
    "a hand-off ends a run that returns after a source, so a loop that checks a flag ends",
    .rule(.m34, .r8, .r121))
  func flag() throws {
    let isDone = Box(false)
    let turns = Counter()
    let thread = Thread {
      RunLoop.current.add(Port(), forMode: .default)
      while !isDone.value, RunLoop.current.run(mode: .default, before: .distantFuture) { turns.add() }
    }
    thread.start()
    try thread.perform(inModes: [.default]) { isDone.value = true }
    try thread.join()
    #expect(isDone.value && turns.value == 1)
  }

  @Test(
    "work handed over before a run keeps its mode alive, and so does its source afterwards", .rule(.m34, .r25)
  )
  func beforeTheRun() throws {
    let log = Log()
    let mayRun = Latch()
    let thread = Thread {
      mayRun.wait()
      log.write("\(RunLoop.current.run(mode: .default, before: .distantFuture))")
      log.write("\(RunLoop.current.run(mode: .default, before: .distantPast))")
    }
    thread.start()
    for name in ["1", "2", "3"] { try thread.perform(inModes: [.default]) { log.write(name) } }
    mayRun.open()
    try thread.join()
    #expect(log.text == "1 2 3 true true")
  }

  @Test("a run with only a block waits until it is stopped", .rule(.m1, .r28a))
  func startedByBlock() throws {
    let log = Log()
    let thread = Thread {
      let loop = RunLoop.current
      loop.perform {
        log.write("started")
        DispatchQueue.global().async { loop.stop(mode: .default) }
      }
      log.write("\(loop.run(mode: .default, for: .seconds(600)))")
    }
    thread.start()
    try thread.join()
    #expect(log.text == "started stopped")
  }
}
