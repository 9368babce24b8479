// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopThreads
import Synchronization

// Hooks that the lower layers call. C sets them when the program is loaded, so that no setup is necessary. Each is
// called on the thread of the event, without any locks held.

/// Posts Foundation's notification for a port that has become invalid.
@_cdecl("rlk_port_became_invalid")
func portBecameInvalid(_ pointer: UnsafeMutableRawPointer) {
  NotificationCenter.default.post(
    name: RunLoopCore.Port.didBecomeInvalidNotification, object: object(RunLoopCore.Port.self, pointer))
}

/// Makes loops release ports whose subclass implements its own invalidation and posts the notification itself.
@_cdecl("rlk_port_came_with_sources")
func portCameWithSources(_ pointer: UnsafeMutableRawPointer) {
  OwnInvalidation.isObserved
}

private enum OwnInvalidation {
  /// One observer for all ports, which exists for the lifetime of the process.
  static let isObserved: Void = {
    _ = NotificationCenter.default.addObserver(
      forName: RunLoopCore.Port.didBecomeInvalidNotification, object: nil, queue: nil
    ) { notification in
      (notification.object as? RunLoopCore.Port)?.leaveLoops()
    }
  }()
}

/// Posts Foundation's notification before the first thread is started, on the thread that starts it.
@_cdecl("rlk_thread_will_start")
func threadWillStart(_ pointer: UnsafeMutableRawPointer) {
  guard !MultiThreading.isAnnounced.exchange(true, ordering: .relaxed) else { return }
  NotificationCenter.default.post(name: .NSWillBecomeMultiThreaded, object: nil)
}

private enum MultiThreading {
  // Relaxed: exactly one thread is the first, regardless of the order of other operations.
  static let isAnnounced = Atomic<Bool>(false)
}

/// Posts Foundation's notification for a thread that is about to end, on that thread.
@_cdecl("rlk_thread_will_exit")
func threadWillExit(_ pointer: UnsafeMutableRawPointer) {
  NotificationCenter.default.post(name: .NSThreadWillExit, object: object(RunLoopThreads.Thread.self, pointer))
}

private func object<Object: AnyObject>(_ type: Object.Type, _ pointer: UnsafeMutableRawPointer) -> Object {
  Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
}
