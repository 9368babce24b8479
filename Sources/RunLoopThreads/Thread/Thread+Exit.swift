// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// `exit()` ends a thread in the middle of arbitrary code. The frames above it are abandoned: the rest of their code
// does not run, and what they retain is not released. Foundation documents that the thread's own objects are released
// nevertheless, so everything that a frame would have ended must be recorded elsewhere:
//
// | an abandoned frame would have              | instead                                                                   |
// |---------------------------------------------|---------------------------------------------------------------------------|
// | released the thread's object                | the thread's slot owns it, and no frame of `entry` does                   |
// | released the block that it calls            | the object or the task owns the block, which is called unretained: ``BareBlock`` |
// | ended work that other threads wait for      | ``Thread/noteBegun(_:)`` has recorded it, and the thread's end drops it   |
// | withdrawn the wait that it is part of       | the thread's end does it                                                  |
// | ended a call-out of the loop                | the loop ends the call-outs it began: `RunLoop.endAbandonedCallOuts()`    |
// | continued with the thread's last steps      | each step is recorded first, so that the end can be restarted             |
//
// The loop's promise has its own slot next to the thread object's, because the core module contains loops but not
// threads.

extension Thread {
  /// Ends the calling thread, which must not be the main thread.
  ///
  /// This does not return. The rest of the calling code does not run, and objects retained by its frames are not
  /// released. The thread's own object, block and loop are released. Work that was posted to it, including the
  /// work that is running, is dropped, and the threads that wait for it receive an error. This happens before any
  /// destructor of thread-specific data runs, or in their second round on a thread that other code created.
  ///
  /// Where a `Never` is expected, as in `Thread.exit() as Never`, overload resolution picks the variant that returns
  /// `Never`, which can end a `guard` or a function that returns a value.
  ///
  /// The corresponding Foundation method is `exit()`, which returns `Void`.
  ///
  /// If the handler of a message port, a socket or a source of system events calls this, the abandoned frames keep
  /// that object alive with its descriptors, signal or name.
  ///
  /// Invalidate it first.
  ///
  /// - Precondition: The calling thread is not the main thread, and is not running a job of an actor or task, which
  ///   would never finish. Both are fatal errors with a message.
  public class func exit() { exitNow() }

  fileprivate static func exitNow() -> Never {
    guard !RunLoop.isMainThread else { fatalError("the main thread cannot exit; the process does") }
    guard withUnsafeCurrentTask(body: { $0 == nil }) else {
      fatalError("Thread.exit() was called in a task, which would never be finished, nor would those that await it")
    }
    if let slot = crl_object_slot_get(), slot != endedMark,
      object(in: slot)._withUnsafeGuaranteedRef({ $0.wasStartedHere })
    {
      endCurrent()
    }
    pthread_exit(nil)
  }

  /// Records that the calling thread, which is this one, begins some work.
  func noteBegun(_ task: PerformTask) {
    task.outer = running.take()
    running = task
  }

  /// Records that the calling thread, which is this one, has finished the work.
  func noteEnded(_ task: PerformTask) {
    if running === task { running = task.outer.take() }
  }
}

extension ThreadMembers {
  /// Ends the calling thread, where the compiler must know that the call does not return.
  ///
  /// This is the variant of ``Thread/exit()`` that is chosen where a `Never` is expected.
  public static func exit() -> Never { Thread.exitNow() }
}

/// A block that can be called without retaining it.
///
/// Every frame that calls a closure may retain it during the call. ``Thread/exit()`` abandons the frames, so the
/// closure and its captures would leak. Calling through ``words`` leaves the owner of the block with the only
/// reference.
struct BareBlock: Sendable {
  // Stored in a structure, because generic code would wrap a bare function in a thunk.
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }

  /// The memory layout of a closure: its function and its captured context.
  ///
  /// The caller ensures that the block outlives the call.
  struct Words {
    fileprivate let function: UnsafeMutableRawPointer?
    fileprivate let context: UnsafeMutableRawPointer?

    func call() {
      ClosureCode.isCalled(function)
      crl_closure_call(function, context)
    }
  }

  var words: Words {
    mutating get {
      withUnsafeBytes(of: &self) { $0.load(as: Words.self) }
    }
  }
}
