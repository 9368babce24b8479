// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopTesting

@main enum Program {
  static func main() throws {
    let callOuts = try VirtualTime.onThisThread { time in
      let timer = RunLoop.current.schedule(in: .seconds(30)) { _ in time.log.write("saved") }
      try time.advance(by: .seconds(60))
      return (time.log.timedCallOuts, timer.isValid)
    }
    print("RunLoopTesting: \(callOuts.0)")
    guard callOuts == ("T@30000 saved@30000", false) else { exit(1) }
  }
}
