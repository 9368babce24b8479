// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// `exit()` ends a thread in the middle of whatever it does. The frames above it are left as they are: the code that
// would come next does not run, and what the frames hold is not released. Foundation's documentation promises that the
// thread's own objects are released all the same, so something else has to know of everything that a frame would have
// ended:
//
// | a frame that was left would have        | instead                                                                       |
// |-----------------------------------------|-------------------------------------------------------------------------------|
// | released the thread's object            | the thread's slot owns it, and no frame of `entry` does                       |
// | released the block that it calls        | the object or the task owns it, and it is called by its words: ``BareBlock``  |
// | ended a piece of work that others await | ``Thread/noteBegun(_:)`` has written it down, and the thread's end drops it    |
// | withdrawn the wait that it is part of   | the thread's end does it                                                      |
// | ended a call-out of the loop            | the loop ends those that it had begun: `RunLoop.endAbandonedCallOuts()`       |
// | gone on with the thread's last steps    | each is noted before it is made, so that the end can be begun anew            |
//
// The loop's promise has a slot beside that of the thread's object, because the core, where the loop is, does not know
// threads.

extension Thread {
  /// Ends the calling thread, which must not be the main one.
  ///
  /// It does not return. No more of the calling code runs, and what its frames hold is not released. What the thread
  /// itself owns is released: its object, its block, its loop. Work that was handed to it, including the work that is
  /// running now, is dropped, and the threads that wait for it get an error. All this is done before any destructor of
  /// thread-specific data runs; on a thread that was made by other means, in the second round of them.
  ///
  /// Where a `Never` is expected, as in `Thread.exit() as Never`, the overload is chosen that has this result: so it
  /// can end a `guard` or a function that returns a value. The corresponding Foundation method is `exit()`, which
  /// returns nothing.
  ///
  /// A message port, a socket or a source of system events whose handler the thread leaves this way is held by the
  /// frames that called the handler, and keeps its descriptors, its signal or its name: invalidate it before.
  ///
  /// - Precondition: The calling thread is not the main one, and does not run a job of an actor or a task, which would
  ///   never be finished. Both are fatal errors that say so.
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

  /// Notes that the thread, which is the calling one, begins some work.
  func noteBegun(_ task: PerformTask) {
    task.outer = running.take()
    running = task
  }

  /// Notes that the thread, which is the calling one, has finished it.
  func noteEnded(_ task: PerformTask) {
    if running === task { running = task.outer.take() }
  }
}

extension ThreadMembers {
  /// Ends the calling thread, in a place where the compiler has to know that the call does not return.
  ///
  /// It is like the method of ``Thread`` that returns nothing, and is chosen where a `Never` is expected.
  public static func exit() -> Never { Thread.exitNow() }
}

/// A block that can be called without holding it.
///
/// Every frame that calls a closure may hold it meanwhile. ``Thread/exit()`` leaves the frames behind, so the closure
/// with everything that it has captured would never be released. If it is called by its words, only the keeper of the
/// block holds it.
struct BareBlock: Sendable {
  // Stored in a structure, because generic code would wrap a function that it takes directly.
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }

  /// A closure as it is in memory: its function, and what it has captured.
  ///
  /// The caller makes sure that the block lives until the call has returned.
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
