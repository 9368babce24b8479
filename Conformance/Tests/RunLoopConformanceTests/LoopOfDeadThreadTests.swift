// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import TestRules
import Testing

@testable import RunLoopConformance

@Suite("Threads that find the loop of an ended one", .timeLimit(.minutes(20)))
struct LoopOfDeadThreadTests {
  /// A key whose destructor makes Core Foundation create the calling thread's loop, in the last round of destructors.
  ///
  /// Core Foundation needs three rounds to release a loop.
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      let round = Int(bitPattern: value)
      if round < 4 {
        pthread_setspecific(LoopOfDeadThreadTests.key, UnsafeRawPointer(bitPattern: round + 1))
      } else {
        CFRunLoopGetCurrent()
      }
    }
    precondition(answer == 0, "no thread-specific key is left (error \(answer))")
    return key
  }()

  @Test(
    "a program has a new loop, although Core Foundation keeps loops of ended threads with the same id",
    .rule(.r113, .r118))
  func fresh() {
    let program = Program(timers: [TimerPlan(date: 2)], main: [.add(.timer(0), .mode(0)), .runUntilStopped])
    for _ in 0..<50 {
      // The next thread reuses this one's stack, and so its id.
      let thread = ProgramThread { pthread_setspecific(Self.key, UnsafeRawPointer(bitPattern: 1)) }
      #expect(thread.end())
      #expect("\(CoreFoundationMachine().run(program))" == "@2 1m0 T0 0- =returned")
    }
  }
}
