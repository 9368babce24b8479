// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents

/// A signal that the process sends to itself.
@main enum Program {
  static func main() throws {
    let loop = RunLoop.current
    let source = try SignalSource(signal: SIGUSR1) { source, event in
      print("RunLoopSystemEvents: \(event.count) signal")
      source.invalidate()
      loop.stop()
    }
    try loop.add(source, forMode: .default)
    kill(getpid(), SIGUSR1)
    exit(loop.run(mode: .default, for: .seconds(60)) == .stopped ? 0 : 1)
  }
}
