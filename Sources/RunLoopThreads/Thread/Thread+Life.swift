// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// Starting and ending.
extension ThreadMembers {
  /// Starts the thread, or throws the reason why it cannot be started.
  ///
  /// - Throws: ``ThreadError/alreadyStarted(thread:)``, ``ThreadError/cancelledBeforeStart(thread:)``, or
  ///   ``ThreadError/cannotStart(thread:number:)``.
  public func tryStart() throws(ThreadError) {
    let (action, stackSize) = lock.withLock { (lifecycle.start(), settings.configuration.stackSize) }
    switch action {
    case .reject(.alreadyStarted): throw .alreadyStarted(thread: label)
    case .reject(.cancelled):
      finishWithoutThread()
      throw .cancelledBeforeStart(thread: label)
    case .create:
      LoadHook.threadWillStart.call(self)
      // The thread owns one reference to its object from here to its last step.
      let own = Unmanaged.passRetained(self)
      do throws(SystemError) {
        _ = try SystemCall.threadCreate.make {
          crl_thread_create(
            stackSize == 0 ? 0 : max(stackSize, Thread.smallestStack), Thread.entry, own.toOpaque())
        }
      } catch {
        lock.withLock { lifecycle.startFailed() }
        finishWithoutThread()
        own.release()
        throw .cannotStart(thread: label, number: error.number)
      }
    }
  }
}

extension Thread {
  /// The kernel's number of the thread; zero before it has started.
  var kernelID: Int32 { lock.withLock { threadID } }

  static let smallestStack = 64 * 1024

  static let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { pointer in
    guard let pointer else { return nil }
    let thread = Unmanaged<Thread>.fromOpaque(pointer)
    thread._withUnsafeGuaranteedRef { $0.beginOnThread() }
    // The slot owns a reference from now on.
    thread.release()
    thread._withUnsafeGuaranteedRef { $0.main() }
    Thread.endCurrent()
    return nil
  }

  private func beginOnThread() {
    Thread.attach(self)
    lock.withLock {
      threadID = RunLoop.callingThreadID
      lifecycle.begin()
      settings.begin(onThread: threadID)
    }
  }

  /// Ends the thread, on it: its last work and its hook run, its loop ends, and what it holds is released.
  ///
  /// User code that is called here may leave by ``exit()``, which calls this again: each step can be begun anew, or is
  /// noted before it is made.
  func endOnThread(announces: Bool) {
    // The work that a thread was running when it left by `exit()` is never finished, nor does the thread wait any more.
    waiting.withdraw()
    while let task = running {
      running = task.outer.take()
      task.abandon()
    }
    finishWork()
    if announces, !hasAnnouncedEnd {
      hasAnnouncedEnd = true
      LoadHook.threadWillExit.call(self)
    }
    promise.end(onThread: true)
    // Released outside the lock.
    _ = lock.withLock {
      if lifecycle.phase == .executing { lifecycle.end() }
      settings.end()
      return body.take()
    }
    releaseAttachments()
  }

  /// Ends the thread, on it; other threads are notified later.
  func endOnThread() { endOnThread(announces: true) }

  /// Ends the main thread's object, or one that stands in for a thread's own.
  ///
  /// It is called on the thread or, if the main thread had left before, wherever its object was made.
  func endMain(onThread: Bool) {
    if onThread {
      endOnThread(announces: false)
    } else {
      lock.withLock { lifecycle.end() }
      promise.end(onThread: false)
    }
    ending.note()
  }

  /// The reason why the thread, which has ended, takes no work.
  final var endedError: ThreadError {
    isMain && RunLoop.mainThreadHasLeft ? .mainThreadHasLeft : .finished(thread: label)
  }

  /// Releases the attachments, and those that their release adds; a chain that goes on forever stays with the object.
  private func releaseAttachments() {
    for _ in 0..<4 {
      let released = lock.withLock { attachments.removeAll() }
      guard !released.isEmpty else { return }
    }
  }

  func finishWithoutThread() {
    promise.end(onThread: false)
    ending.note()
  }
}
