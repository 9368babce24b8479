// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import RunLoopLibC
import Synchronization

/// The main dispatch queue as the main loop sees it: a port that says when it has work, and a call that does the work.
///
/// `Dispatch` is imported because it links the library: these entry points are in no header.
enum MainQueue {
  /// What makes or finds the handle of a main dispatch queue: a descriptor.
  typealias Handle = @Sendable () throws(SystemError) -> Int32

  /// Readable while the queue has work; the first call makes the descriptor.
  ///
  /// libdispatch ends the process if it cannot make the descriptor, so that it is asked only if one can be had.
  static let madeHandle: Handle = { () throws(SystemError) in
    if !isHandleMade.load(ordering: .relaxed) {
      _ = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
      isHandleMade.store(true, ordering: .relaxed)
    }
    return handle
  }
  // Relaxed: a thread that does not see it yet makes one descriptor for nothing.
  private static let isHandleMade = Atomic(false)

  private static var handle: Int32 { _dispatch_get_main_queue_handle_4CF() }

  /// Whether the queue, whose handle was made, has signalled work that nobody has taken.
  static var hasNotice: Bool { crl_poll_now(handle, Int16(POLLIN)) > 0 }

  /// Takes the queue's notice of work; returns false if there is none.
  static func takeNotice() -> Bool {
    (try? SystemCall.eventRead.makeUninterrupted { crl_event_read(handle) }) != nil
  }
}

@inline(never)
func runLoopIsServicingTheMainDispatchQueue() {
  _dispatch_main_queue_callback_4CF(nil)
  crl_keep_frame(9)
}
