// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopThreads

/// An actor isolated to a resident thread.
actor Sums {
  private nonisolated let thread: ResidentThread
  private var sum = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  init(on thread: ResidentThread) { self.thread = thread }

  func add(_ number: Int) -> (sum: Int, name: String?) {
    sum += number
    return (sum, Thread.current.name)
  }
}

@main enum Program {
  static func main() {
    MainLoop.run {
      let thread = try ResidentThread(name: "client")
      let sums = Sums(on: thread)
      for number in 1...9 { _ = await sums.add(number) }
      let (sum, name) = await sums.add(10)
      thread.stop()
      print("RunLoopThreads: \(sum) on the thread \(name ?? "without a name")")
      guard sum == 55, name == "client" else { exit(1) }
    }
  }
}
