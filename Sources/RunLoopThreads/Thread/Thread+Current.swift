// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import Synchronization

// A thread's object is kept in a thread-local slot of the thread.
//
// A thread started by this package ends its object, and with it its loop, as its last step before any destructor of
// thread-specific data. For a thread that leaves by a bare `pthread_exit` or was created by other code, a destructor
// ends the object, in the round in which loops end.
extension Thread {
  /// The object of the calling thread, created on first use for a thread that other code created.
  ///
  /// In a destructor of thread-specific data that runs after the object has ended, this returns a temporary object
  /// that has already finished. The corresponding Foundation property is `current`.
  ///
  /// - Complexity: O(1), without a system call after the first use.
  public class var current: Thread {
    guard let slot = crl_object_slot_get() else { return attachForeign() }
    return slot == endedMark ? Thread(endedThread: RunLoop.callingThreadID) : object(in: slot).takeUnretainedValue()
  }

  /// Calls `body` with the calling thread's object without retaining it, because the thread keeps it alive meanwhile.
  static func withCurrent(_ body: (Thread) -> Void) {
    guard let slot = crl_object_slot_get(), slot != endedMark else { return body(current) }
    object(in: slot)._withUnsafeGuaranteedRef(body)
  }

  static func object(in slot: UnsafeMutableRawPointer) -> Unmanaged<Thread> { .fromOpaque(slot) }

  /// The value in the slot of a thread whose object has ended.
  static var endedMark: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  private static func attachForeign() -> Thread {
    if RunLoop.isMainThread {
      // The main thread's object outlives everything.
      let main = mainObject
      crl_object_slot_set(Unmanaged.passUnretained(main).toOpaque())
      return main
    }
    guard !RunLoop.callingThreadHasEnded else { return Thread(endedThread: RunLoop.callingThreadID) }
    let thread = Thread(
      foreign: RunLoop.callingThreadID, isMain: false, promise: LoopPromise(RunLoop.currentIfMade))
    thread.ending.round = RunLoop.nextRound
    thread.ending.lastRound = RunLoop.lastRound
    attach(thread)
    return thread
  }

  /// Attaches an object to the calling thread, which then owns one reference to the object and one to its `ending`.
  static func attach(_ thread: Thread) {
    watchForks()
    crl_object_slot_set(Unmanaged.passRetained(thread).toOpaque())
    thread.promise.install()
    pthread_setspecific(endKey, Unmanaged.passRetained(thread.ending).toOpaque())
  }

  /// Detaches the parent's object in a forked child, whose only thread is the child's main thread.
  static func forgetParentsObject() {
    crl_object_slot_set(nil)
    pthread_setspecific(endKey, nil)
  }

  /// Ends and releases the calling thread's object, unless there is none or it is the main thread's.
  static func endCurrent() {
    guard let slot = crl_object_slot_get(), slot != endedMark else { return }
    let thread = object(in: slot)
    guard !thread._withUnsafeGuaranteedRef({ $0.isMain }) else { return }
    thread._withUnsafeGuaranteedRef { $0.endOnThread() }
    crl_object_slot_set(endedMark)
    thread.release()
  }

  static let endKey: pthread_key_t = {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      guard let value else { return }
      let end = Unmanaged<ThreadEnd>.fromOpaque(value)
      let isLast = end._withUnsafeGuaranteedRef { end in
        if end.round >= RunLoop.lastRound { endCurrent() }
        guard end.round < end.lastRound else { return true }
        end.round += 1
        return false
      }
      guard isLast else { return _ = pthread_setspecific(endKey, value) }
      end._withUnsafeGuaranteedRef { $0.note() }
      end.release()
    }
    guard answer == 0 else { fatalError("no thread-specific key is left for the end of threads (error \(answer))") }
    return key
  }()
}
