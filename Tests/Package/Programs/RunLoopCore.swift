// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import RunLoopCore

/// A block from another thread, and a timer that ends the run.
@main enum Program {
  static func main() {
    let loop = RunLoop.current
    DispatchQueue.global().async {
      loop.perform { RunLoop.current.schedule(in: .milliseconds(1)) { _ in loop.stop() } }
    }
    // Keeps the mode from being empty until the block is posted.
    let anchor = Port()
    loop.add(anchor, forMode: .default)
    let result = loop.run(mode: .default, for: .seconds(60))
    print("RunLoopCore: \(result)")
    exit(result == .stopped ? 0 : 1)
  }
}
