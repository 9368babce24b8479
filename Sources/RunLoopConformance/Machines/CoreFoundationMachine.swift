// Core Foundation comes with Foundation's library, which is linked where Foundation is imported.
import Foundation

/// Core Foundation's run loop on virtual time.
///
/// Each program has a fresh thread, which is not the main one: the main loop is never empty.
package struct CoreFoundationMachine: Machine {
  package init() {}

  package func run(_ program: Program) -> Log {
    let clock = VirtualClock()
    let task = ProgramTask()
    let thread = ProgramThread {
      clock.join()
      let interpreter = Interpreter(program, CoreFoundationSubject(clock))
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
    return withExtendedLifetime(clock) { task.log }
  }
}
