// SPDX-License-Identifier: Apache-2.0

import CLaboratory
import RunLoopInstruments
import RunLoopThreads
import Synchronization

/// The kernel's number of the calling thread.
var callingThread: Int32 { lab_thread_number() }

/// Whether the calling thread has a loop, without creating one.
var hasLoop: Bool {
  let thread = callingThread
  return Instruments.loops.contains { $0.thread == thread }
}

/// Whether the loop of a thread sleeps; can be called from any thread.
func isAsleep(_ thread: Int32) -> Bool { Instruments.loops.first { $0.thread == thread }?.isWaiting == true }

/// Runs `body` on a new thread and waits until the thread has ended.
func onNewThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result { startThread(body).result() }

/// Starts a thread.
func startThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> StartedThread<Result> {
  StartedThread(body)
}

/// A thread with a result.
final class StartedThread<Result: Sendable>: Sendable {
  private let value: Found<Result?>
  private let thread: Thread

  fileprivate init(_ body: @escaping @Sendable () -> Result) {
    let value = Found<Result?>(nil)
    self.value = value
    thread = Thread { value.value = body() }
    thread.start()
  }

  /// Waits until the thread has ended, and returns its result.
  func result() -> Result {
    do {
      try thread.join()
    } catch {
      fatalError("a thread cannot be waited for: \(error)")
    }
    guard let value = value.value else { fatalError("a thread has ended without a result") }
    return value
  }
}
