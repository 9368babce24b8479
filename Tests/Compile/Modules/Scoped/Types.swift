// SPDX-License-Identifier: Apache-2.0

import class Foundation.RunLoop
import class Foundation.Thread
import class Foundation.Timer
import struct Foundation.Date

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

func useScoped() {
  RunLoop.main.run(until: Date())
  _ = Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in print(Thread.isMainThread) }
}
