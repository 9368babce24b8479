// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("A timer's date and what it carries, from many threads", .timeLimit(.minutes(20)))
struct TimerThreadsTests {
  @Test("threads set and read a timer's date and userInfo while it fires and ends", .rule(.r120))
  func many() {
    let log = onNewThread {
      let log = Log()
      let loop = RunLoop.current
      for round in 0..<20 {
        let token = Token(log)
        let timer = Timer(fire: Date(), interval: 0.000_05, userInfo: token, repeats: true) { timer in
          if !(timer.userInfo is Token) && timer.isValid { log.write("nothing carried") }
        }
        loop.add(timer, forMode: .default)
        let threads = (0..<3).map { number in
          startThread {
            for turn in 0..<200 {
              switch (turn + number) % 4 {
              case 0: timer.fireDate = Date()
              case 1: timer.fireDate = .distantPast
              case 2: if timer.fireDate > Date(timeIntervalSinceNow: 1) { log.write("too late") }
              default: (timer.userInfo as? Token)?.touch()
              }
            }
            if number == round % 3 {
              timer.invalidate()
              // A removal does not wake the loop.
              loop.wakeUp()
            }
          }
        }
        loop.run(until: .distantFuture)
        for thread in threads { thread.result() }
        if timer.isValid || timer.userInfo != nil { log.write("not ended") }
      }
      return log.text
    }
    #expect(log == Array(repeating: "released", count: 20).joined(separator: " "))
  }
}
