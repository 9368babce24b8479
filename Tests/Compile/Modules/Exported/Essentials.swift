// SPDX-License-Identifier: Apache-2.0

// A file that imports only the submodules of Foundation.
import Dispatch
import FoundationEssentials

func later(_ queue: DispatchQueue) {
  let loop = RunLoop.main
  queue.async { loop.run(until: Date()) }
}
