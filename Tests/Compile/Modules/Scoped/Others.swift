// SPDX-License-Identifier: Apache-2.0

// Scoped imports of other names from Foundation.
import struct Foundation.Date

#if canImport(RunLoopKit)
  import RunLoopKit
#else
  import class Foundation.RunLoop
  import class Foundation.Thread
  import class Foundation.Timer
#endif

func useScoped() {
  RunLoop.main.run(until: Date())
  _ = Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in print(Thread.isMainThread) }
}
