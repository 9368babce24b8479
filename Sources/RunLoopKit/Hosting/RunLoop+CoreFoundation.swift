// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
public import Foundation
public import RunLoopCore

// Core Foundation's loop of a thread as a part of ours.
extension RunLoopCore.RunLoop {
  /// Serves everything that is scheduled on the thread's Foundation run loop whenever this loop runs.
  ///
  /// On the main thread, both loops serve each other automatically in the modes of the same names, and this call only
  /// reverts ``stopServingCoreFoundation()``. On other threads, this loop serves Foundation's automatically as soon as
  /// that loop has items in the current mode. In that case, however, sources of Core Foundation do not keep a run
  /// without a time limit alive, because they may never be signalled, until this method is called. Timers do, and all
  /// items keep a run with a time limit alive.
  ///
  /// Foundation's own timers, socket ports and notification queues, the file handles that use them to notify the main
  /// thread, and all code that creates Core Foundation sources require the Foundation loop of a thread, which is Core
  /// Foundation's. After this call, this loop waits in that loop, in the mode of the same name: both are served while
  /// this one runs, and neither polls. To do so for another thread's loop, call this method on that thread:
  ///
  /// ```swift
  /// loop.perform { try? RunLoop.current.serveCoreFoundation() }
  /// ```
  ///
  /// - A source handled by Core Foundation's loop counts as handled by a run of this loop; timers, observers and
  ///   blocks do not. `CFRunLoopStop` stops the innermost run of this loop. On threads other than the main one, a call
  ///   from a call-out of this loop stops Core Foundation's loop instead.
  /// - A mode is empty if it is empty in both loops.
  /// - On the main thread, Core Foundation's loop drains the main dispatch queue, which cannot be prevented.
  ///
  /// Calling it again has no effect. The hosting ends with the thread, or with ``stopServingCoreFoundation()``.
  ///
  /// - Throws: `RunLoopError.cannotBeHosted(_:)` if the system has no descriptors left for both loops, `isGuest`,
  ///   `loopHasEnded`, or `wrongThread(loop:caller:)` if the calling thread is not the loop's.
  public func serveCoreFoundation() throws(RunLoopError) {
    let service = mainService as? MainThreadService
    // Core Foundation aborts if there are no descriptors for its loop and the loop's modes.
    try setHost(sparingDescriptors: CoreFoundationHost.spareDescriptors) { CoreFoundationHost($0, service: service) }
    (host as? CoreFoundationHost)?.isAutomatic = false
    servesOtherLoop = true
    guard let service else { return }
    let runLoop: CFRunLoop = CFRunLoopGetCurrent()
    service.turn(on: true)
    service.attach(to: runLoop, self)
    service.noteHosting(of: self, in: runLoop)
  }

  /// Makes the loop wait by itself again, without serving items on Foundation's loop, not even automatically.
  ///
  /// On the main thread, Foundation's loop also no longer serves this one, starting with its next run. A wait in
  /// progress ends. ``serveCoreFoundation()`` reverts it.
  ///
  /// - Precondition: The calling thread is the loop's.
  public func stopServingCoreFoundation() {
    (mainService as? MainThreadService)?.turn(on: false)
    removeHost()
    servesOtherLoop = false
  }

  /// Whether everything that is scheduled on the thread's Foundation run loop is served.
  ///
  /// Can be used from any thread.
  public var isServingCoreFoundation: Bool { host is CoreFoundationHost || isServedWithoutACall }

  /// Whether this is the main loop, and serves an existing Core Foundation loop automatically.
  private var isServedWithoutACall: Bool {
    guard let service = mainService as? MainThreadService else { return false }
    return service.isOn && service.runLoop != nil
  }

  /// Foundation's run loop of this loop's thread while it is served, for schedule methods that take one.
  ///
  /// Can be used from any thread, although Foundation does not guarantee that its loops can be used on other threads.
  public var foundationRunLoop: Foundation.RunLoop? {
    (host as? CoreFoundationHost)?.foundation ?? (isServedWithoutACall ? .main : nil)
  }
}
