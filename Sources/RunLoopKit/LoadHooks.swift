// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopThreads
import Synchronization

// What the layers below tell this one. C sets these functions when the program is loaded, so that nobody has to set up
// anything. Each is called on the thread where it happens, with no lock held.

/// Posts Foundation's notification for a port that has become invalid.
@_cdecl("rlk_port_became_invalid")
func portBecameInvalid(_ pointer: UnsafeMutableRawPointer) {
  NotificationCenter.default.post(
    name: RunLoopCore.Port.didBecomeInvalidNotification, object: object(RunLoopCore.Port.self, pointer))
}

/// Sees to it that loops let go of a port that becomes invalid in a way of its own and posts the notification itself.
@_cdecl("rlk_port_came_with_sources")
func portCameWithSources(_ pointer: UnsafeMutableRawPointer) {
  OwnInvalidation.isObserved
}

private enum OwnInvalidation {
  /// One observer for all ports; it stays for as long as the process.
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
  // Relaxed: one thread is the first, whatever else is ordered.
  static let isAnnounced = Atomic<Bool>(false)
}

/// Posts Foundation's notification for a thread that is about to end, on it.
@_cdecl("rlk_thread_will_exit")
func threadWillExit(_ pointer: UnsafeMutableRawPointer) {
  NotificationCenter.default.post(name: .NSThreadWillExit, object: object(RunLoopThreads.Thread.self, pointer))
}

private func object<Object: AnyObject>(_ type: Object.Type, _ pointer: UnsafeMutableRawPointer) -> Object {
  Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
}
