// SPDX-License-Identifier: Apache-2.0

// Core Foundation is part of Foundation's library, which is linked because Foundation is imported.
import Foundation
import Synchronization

/// Core Foundation's run loop on virtual time.
///
/// Each program has a new thread and a new loop. It is not the main thread, because the main loop is never empty.
package struct CoreFoundationMachine: Machine {
  package init() {}

  package func run(_ program: Program) -> Log {
    // In the worst case, every cached thread has the loop of an ended one.
    for _ in 0..<1000 {
      if let log = runOnce(program) { return log }
    }
    preconditionFailure("the timers of Core Foundation's loops are not on the clock")
  }

  /// Runs a program on a new thread; returns nil if the thread's loop is not new.
  private func runOnce(_ program: Program) -> Log? {
    let clock = VirtualClock()
    let task = ProgramTask()
    let isNew = Atomic(true)
    let thread = ProgramThread {
      clock.join()
      guard let subject = CoreFoundationSubject(clock) else { return isNew.store(false, ordering: .relaxed) }
      let interpreter = Interpreter(program, subject)
      clock.whenAsleep { [unowned interpreter] deadline in
        if let tick = interpreter.nextInterruption, deadline.map({ tick <= $0 }) ?? true {
          clock.move(to: tick)
          interpreter.interrupt()
        } else if deadline != nil {
          return .untilDeadline
        } else {
          interpreter.endSleep()
        }
        return .lookAgain
      }
      task.run(interpreter)
    }
    guard thread.end() else { return task.hung(keeping: clock) }
    return withExtendedLifetime(clock) { isNew.load(ordering: .relaxed) ? task.log : nil }
  }
}
