// SPDX-License-Identifier: Apache-2.0

import CVirtualCalls
import Dispatch
import Glibc

/// A thread for one program, which can be joined with a time limit.
final class ProgramThread: Sendable {
  private let thread: pthread_t

  /// The real time in seconds after which a program counts as hung.
  ///
  /// A program usually takes well under a millisecond.
  static let patience: Int32 = 60

  init(_ body: @escaping @Sendable () -> Void) {
    thread = startThread(body)
  }

  /// Waits until the thread and its destructors have ended; returns false after the time limit.
  ///
  /// Must not be called again after it has returned true.
  func end(within seconds: Int32 = patience) -> Bool {
    let answer = cvc_thread_join(thread, seconds)
    precondition(answer == 0 || answer == ETIMEDOUT, "a thread could not be joined (error \(answer))")
    return answer == 0
  }
}

/// A thread that performs work while the caller waits.
final class Companion: @unchecked Sendable {
  // Sendable: the semaphores order the hand-over of work, and the caller waits meanwhile.
  private var work: (@Sendable () -> Void)?
  private let given = DispatchSemaphore(value: 0)
  private let done = DispatchSemaphore(value: 0)
  private var thread: ProgramThread?

  /// Starts the thread, which first calls `begin`.
  init(_ begin: @escaping @Sendable () -> Void) {
    thread = ProgramThread { [unowned self] in
      begin()
      while true {
        self.given.wait()
        guard let work = self.work else { return }
        work()
        self.done.signal()
      }
    }
  }

  /// Runs work on the thread, and waits until it is done.
  func perform(_ work: @escaping @Sendable () -> Void) {
    self.work = work
    given.signal()
    done.wait()
  }

  /// Ends the thread, and waits for its end.
  func end() {
    work = nil
    given.signal()
    let hasEnded = thread?.end() ?? true
    precondition(hasEnded, "an idle thread did not end")
  }
}

private func startThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
  var thread = pthread_t()
  let answer = pthread_create(&thread, nil, threadMain, Unmanaged.passRetained(Work(body)).toOpaque())
  precondition(answer == 0, "no thread could be made (error \(answer))")
  return thread
}

private final class Work {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private nonisolated func threadMain(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let work { Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body() }
  return nil
}
