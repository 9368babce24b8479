// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopThreads

#if compiler(>=6.3) && compiler(<6.4)
  @_spi(ExperimentalCustomExecutors) import RunLoopExecutors
#else
  import RunLoopExecutors
#endif

/// Tasks on our threads, with a synchronous main.
@main enum Program {
  static func main() {
    #if compiler(>=6.3) && compiler(<6.4)
      RunLoopExecutorFactory.install()
    #endif
    MainLoop.run {
      let name = await Task.detached { Thread.current.name }.value
      try await Task.sleep(for: .milliseconds(1))
      print("RunLoopExecutors: a task on the thread \(name ?? "without a name")")
    }
  }
}
