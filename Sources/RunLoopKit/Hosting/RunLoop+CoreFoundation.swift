// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
public import Foundation
public import RunLoopCore

// Core Foundation's loop of a thread, inside ours.
extension RunLoopCore.RunLoop {
  /// Serves everything that schedules itself on the thread's run loop of Foundation, whenever this loop runs.
  ///
  /// On the main thread both loops do so by themselves, and serve each other in the modes of the same names; this call
  /// reverts ``stopServingCoreFoundation()``. On other threads this loop does so by itself too, as soon as Foundation's
  /// loop of the thread has items in the mode that runs. There a source of Core Foundation's, which may never be
  /// signalled again, keeps no run alive that has no time limit, until this was called. Its timers do, and in a run
  /// with a time limit everything does.
  ///
  /// Foundation's own timers, socket ports and notification queues, the file handles that notify by these on the main
  /// thread, and all code that makes sources of Core Foundation need Foundation's loop of a thread, which is Core
  /// Foundation's. From now on this loop waits in that one, in the mode of the same name: both are served while this
  /// one runs, and neither polls. To do so for another thread's loop, perform it there:
  ///
  /// ```swift
  /// loop.perform { try? RunLoop.current.serveCoreFoundation() }
  /// ```
  ///
  /// - A source that Core Foundation's loop handles counts as handled by a run of this one; its timers, observers and
  ///   blocks do not. `CFRunLoopStop` stops the innermost run of this loop; on another thread than the main one, not
  ///   from a call-out of this loop: there it stops Core Foundation's.
  /// - A mode is empty if it is empty in both loops.
  /// - On the main thread Core Foundation's loop drains the main dispatch queue, because it cannot be kept from it.
  ///
  /// Calling it again has no effect. The hosting ends with the thread, or with ``stopServingCoreFoundation()``.
  ///
  /// - Throws: `RunLoopError.cannotBeHosted(_:)` if the system has no descriptors left for both loops, `isGuest`,
  ///   `loopHasEnded`, and `wrongThread(loop:caller:)` if the calling thread is not the loop's.
  public func serveCoreFoundation() throws(RunLoopError) {
    let service = mainService as? MainThreadService
    // Core Foundation ends the process if it has no descriptors for its loop and the loop's modes.
    try setHost(sparingDescriptors: CoreFoundationHost.spareDescriptors) { CoreFoundationHost($0, service: service) }
    (host as? CoreFoundationHost)?.isAutomatic = false
    servesOtherLoop = true
    guard let service else { return }
    let runLoop: CFRunLoop = CFRunLoopGetCurrent()
    service.turn(on: true)
    service.attach(to: runLoop, self)
    service.noteHosting(of: self, in: runLoop)
  }

  /// Makes the loop wait by itself again: items that are scheduled on Foundation's loop are no longer served, not even
  /// without a call.
  ///
  /// On the main thread runs of Foundation's loop do not serve this one any more either, from the next run on.
  ///
  /// A wait in progress ends. ``serveCoreFoundation()`` reverts it.
  ///
  /// - Precondition: The calling thread is the loop's.
  public func stopServingCoreFoundation() {
    (mainService as? MainThreadService)?.turn(on: false)
    removeHost()
    servesOtherLoop = false
  }

  /// Whether everything that schedules itself on the thread's run loop of Foundation is served.
  ///
  /// Can be used from any thread.
  public var isServingCoreFoundation: Bool { host is CoreFoundationHost || isServedWithoutACall }

  /// Whether this is the main loop, and Core Foundation's has been made and is served whenever this one runs.
  private var isServedWithoutACall: Bool {
    guard let service = mainService as? MainThreadService else { return false }
    return service.isOn && service.runLoop != nil
  }

  /// Foundation's run loop of this loop's thread, as long as it is served; for schedule methods that take one.
  ///
  /// Can be used from any thread, though Foundation promises nothing for the use of its loop on another thread than the
  /// loop's.
  public var foundationRunLoop: Foundation.RunLoop? {
    (host as? CoreFoundationHost)?.foundation ?? (isServedWithoutACall ? .main : nil)
  }
}
