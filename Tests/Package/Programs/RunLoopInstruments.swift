// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments

/// A block that is recorded.
@main enum Program {
  static func main() {
    let holder = Instruments.hold(.record)
    let loop = RunLoop.current
    loop.perform { print("RunLoopInstruments: \(Instruments.level)") }
    let result = loop.run(mode: .default, for: .zero)
    holder.release()
    exit(result == .timedOut && Instruments.level != .record ? 0 : 1)
  }
}
