// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Our run loop on virtual time, with a new thread for each program.
package struct RunLoopMachine: Machine {
  package init() {}

  package func run(_ program: Program) -> Log {
    let task = ProgramTask()
    let thread = ProgramThread {
      let time = SteppedTime()
      let interpreter = Interpreter(program, RunLoopSubject(time, time.makeLoop()))
      for interruption in program.whileAsleep {
        time.at(.seconds(interruption.tick)) { [unowned interpreter] in interpreter.interrupt() }
      }
      time.whenAsleepForEver { [unowned interpreter] in interpreter.endSleep() }
      task.run(interpreter)
    }
    guard thread.end() else { return task.hung(keeping: nil) }
    return task.log
  }
}
