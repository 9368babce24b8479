// SPDX-License-Identifier: Apache-2.0

// A program whose code is isolated to the main actor by default.
import CoreFoundation
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

final class Model {
  private var count = 0
  private var timer: Timer?

  func start() {
    let timer = Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { _ in print("tick") }
    RunLoop.main.add(timer, forMode: .common)
    RunLoop.main.perform { print("posted") }
    self.timer = timer
    count += 1
  }
}

extension RunLoop {
  func pump() { run(until: Date()) }
}

final class Listener: NSObject, StreamDelegate {
  func stream(_ stream: Stream, handle event: Stream.Event) {}
}

nonisolated protocol Scheduling {
  func add(_ timer: Timer, forMode mode: RunLoop.Mode)
}

nonisolated extension RunLoop: Scheduling {}

#if canImport(RunLoopKit)
  nonisolated final class Worker: Thread, @unchecked Sendable {
    override func main() { RunLoop.current.run(until: Date()) }
  }
#endif
