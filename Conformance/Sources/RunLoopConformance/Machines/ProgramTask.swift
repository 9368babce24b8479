// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A program on its thread, from the point of view of the machine that waits for it.
final class ProgramTask: Sendable {
  private let interpreter = Mutex<Interpreter?>(nil)

  /// Runs a program to its end; must be called on the program's thread.
  func run(_ interpreter: Interpreter) {
    self.interpreter.withLock { $0 = interpreter }
    interpreter.run()
  }

  /// The log of the program so far.
  var log: Log { interpreter.withLock { $0 }?.logSoFar ?? Log() }

  /// Returns the log of a program that does not end.
  ///
  /// Its thread continues, so the objects that it uses are kept permanently.
  func hung(keeping used: AnyObject?) -> Log {
    _ = Unmanaged.passRetained(self)
    if let used { _ = Unmanaged.passRetained(used) }
    var log = log
    let last = log.entries.last?.state ?? Log.State(tick: 0, depth: 0, mode: nil, isWaiting: false)
    log.entries.append(Log.Entry(.hung, last))
    return log
  }
}
