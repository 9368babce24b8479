// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import RunLoopLibC
import Synchronization

/// The main dispatch queue as seen by the main loop: a descriptor that signals work, and a call that performs it.
///
/// `Dispatch` is imported only to link the library: these entry points are in no header.
enum MainQueue {
  /// Creates or returns the descriptor of a main dispatch queue.
  typealias Handle = @Sendable () throws(SystemError) -> Int32

  /// A descriptor that is readable while the queue has work, created by the first call.
  ///
  /// libdispatch traps if it cannot create the descriptor, so this first checks that a descriptor is available.
  static let madeHandle: Handle = { () throws(SystemError) in
    if !isHandleMade.load(ordering: .relaxed) {
      _ = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
      isHandleMade.store(true, ordering: .relaxed)
    }
    return handle
  }
  // Relaxed ordering suffices: a thread that does not see the change yet only makes a redundant check.
  private static let isHandleMade = Atomic(false)

  private static var handle: Int32 { _dispatch_get_main_queue_handle_4CF() }

  /// Whether the queue, whose handle exists, has signalled work that has not been taken yet.
  static var hasNotice: Bool { crl_poll_now(handle, Int16(POLLIN)) > 0 }

  /// Takes the queue's notification of work, and returns `false` if there is none.
  static func takeNotice() -> Bool {
    (try? SystemCall.eventRead.makeUninterrupted { crl_event_read(handle) }) != nil
  }
}

@inline(never)
func runLoopIsServicingTheMainDispatchQueue() {
  _dispatch_main_queue_callback_4CF(nil)
  crl_keep_frame(9)
}
