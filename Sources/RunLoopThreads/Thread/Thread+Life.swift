// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// Starting and ending threads.
extension ThreadMembers {
  /// Starts the thread, or throws an error if it cannot be started.
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
      // The thread owns a reference to its object from here until its last step.
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
  /// The kernel's ID of the thread, or zero before it has started.
  var kernelID: Int32 { lock.withLock { threadID } }

  static let smallestStack = 64 * 1024

  static let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { pointer in
    guard let pointer else { return nil }
    let thread = Unmanaged<Thread>.fromOpaque(pointer)
    thread._withUnsafeGuaranteedRef { $0.beginOnThread() }
    // From now on, the slot owns a reference.
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

  /// Ends the thread, on the thread itself: runs its last work and the exit hook, ends its loop and releases what it
  /// holds.
  ///
  /// User code called here may leave by ``exit()``, which calls this again. Each step can therefore be repeated, or is
  /// recorded before it begins.
  func endOnThread(announces: Bool) {
    // After `exit()`, the work that was running never finishes, and the thread no longer waits for another.
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
    // Released after unlocking.
    _ = lock.withLock {
      if lifecycle.phase == .executing { lifecycle.end() }
      settings.end()
      return body.take()
    }
    releaseAttachments()
  }

  /// Ends the thread, on the thread itself; other threads are notified later.
  func endOnThread() { endOnThread(announces: true) }

  /// Ends the main thread's object, or one that stands in for a thread's own object.
  ///
  /// It is called on that thread, or, if the main thread left earlier, on the thread that created the object.
  func endMain(onThread: Bool) {
    if onThread {
      endOnThread(announces: false)
    } else {
      lock.withLock { lifecycle.end() }
      promise.end(onThread: false)
    }
    ending.note()
  }

  /// The error for work that is posted to the thread after it has ended.
  final var endedError: ThreadError {
    isMain && RunLoop.mainThreadHasLeft ? .mainThreadHasLeft : .finished(thread: label)
  }

  /// Releases the attachments and any that are added meanwhile, up to four rounds; the rest are released with the
  /// object.
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
