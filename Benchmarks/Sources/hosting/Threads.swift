// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopKit
import Synchronization

/// Starts a thread on one processor, by its number, if there is more than one.
///
/// Otherwise the scheduler would decide whether a wake-up crosses processors, and the results would vary.
@discardableResult
func startThread(on processor: Int, _ body: @escaping @Sendable () -> Void) -> Thread {
  let thread = Thread(block: body)
  if ProcessInfo.processInfo.activeProcessorCount > 1 { thread.configuration.processors = [processor] }
  thread.start()
  return thread
}

/// Hands a value from one thread to another.
final class Handover<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)

  func give(_ value: Value) { self.value.withLock { $0 = value } }

  func take() -> Value {
    while true { if let value = value.withLock({ $0 }) { return value } else { sched_yield() } }
  }
}

/// A time that one thread sets and another waits for.
final class Moment: Sendable {
  private let number = Atomic<Int>(0)

  func store(_ value: Int) { number.store(value, ordering: .releasing) }

  func await() -> Int {
    while true {
      let value = number.load(ordering: .acquiring)
      if value != 0 { return value }
      sched_yield()
    }
  }
}
