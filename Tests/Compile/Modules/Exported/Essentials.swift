// SPDX-License-Identifier: Apache-2.0

// A file whose only imports are of the parts of Foundation.
import Dispatch
import FoundationEssentials

func later(_ queue: DispatchQueue) {
  let loop = RunLoop.main
  queue.async { loop.run(until: Date()) }
}
