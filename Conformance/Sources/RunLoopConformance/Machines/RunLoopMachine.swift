// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// Our run loop on virtual time.
///
/// Each program has a fresh thread.
package struct RunLoopMachine: Machine {
  private let sabotage: Sabotage

  package init() { self.init(sabotage: []) }

  /// A loop that is broken on purpose, in a debug build.
  package init(sabotage: Sabotage) { self.sabotage = sabotage }

  package func run(_ program: Program) -> Log {
    let task = ProgramTask()
    let sabotage = sabotage
    let thread = ProgramThread {
      let time = VirtualTime()
      let interpreter = Interpreter(program, RunLoopSubject(time, time.makeLoop(sabotage: sabotage)))
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
