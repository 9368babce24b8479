// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A program on its thread, as the machine sees it that waits for it.
final class ProgramTask: Sendable {
  private let interpreter = Mutex<Interpreter?>(nil)

  /// Runs a program to its end.
  ///
  /// The program's thread.
  func run(_ interpreter: Interpreter) {
    self.interpreter.withLock { $0 = interpreter }
    interpreter.run()
  }

  /// What the program has logged.
  var log: Log { interpreter.withLock { $0 }?.logSoFar ?? Log() }

  /// What a program has logged that does not come to its end.
  ///
  /// Its thread goes on: what it uses is kept for good.
  func hung(keeping used: AnyObject?) -> Log {
    _ = Unmanaged.passRetained(self)
    if let used { _ = Unmanaged.passRetained(used) }
    var log = log
    let last = log.entries.last?.state ?? Log.State(tick: 0, depth: 0, mode: nil, isWaiting: false)
    log.entries.append(Log.Entry(.hung, last))
    return log
  }
}
