// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phases 7 and 11 of the pass: the main dispatch queue, on the main loop.

extension RunLoop {
  /// What a wait has found besides the items of the mode, for the same pass.
  struct Notices: OptionSet {
    let rawValue: UInt8

    /// The main dispatch queue's notice of work has been taken, and the work is to be done.
    static let mainQueue = Notices(rawValue: 1 << 0)
    /// The host has handled a source of its own.
    static let host = Notices(rawValue: 1 << 1)
  }

  /// Whether the main dispatch queue has work, checked without waiting; if it has, the pass does not wait either.
  ///
  /// The queue is not checked in the first pass of a run, nor in the pass after it was drained, so that it alternates
  /// with everything else.
  @inline(__always)
  func isMainQueueReady(_ mode: ModeState) -> Bool {
    guard innermost.mayAskMainQueue, isServingMainQueue(mode), MainQueue.takeNotice() else { return false }
    notices.insert(.mainQueue)
    lastSleepBegan = .never
    // The epoll set may have been notified of the same work.
    table.withLock { _ in mode.pollSet?.isMainQueueReady = false }
    return true
  }

  /// Whether the main dispatch queue has work that a run of another library's loop, in which this one is a guest, could
  /// do now: its mode is a common one, and the queue is not being drained.
  ///
  /// It costs a system call. Used on the main thread.
  package var hasMainQueueWork: Bool { !isDrainingMainQueue && isInCommonMode && MainQueue.hasNotice }

  /// Runs what was queued on the main dispatch queue before now, in a call-out of another library's loop.
  ///
  /// Used on the main thread.
  package func runMainQueue() {
    guard MainQueue.takeNotice() else { return }
    isDrainingMainQueue = true
    runLoopIsServicingTheMainDispatchQueue()
    isDrainingMainQueue = false
  }

  /// Runs what was queued on the main dispatch queue before now.
  func drainMainQueue(_ mode: ModeState) -> Served {
    guard isServingMainQueue(mode) else { return .nothing }
    if notices.remove(.mainQueue) == nil {
      guard let set = table.withLock({ _ in mode.pollSet }), set.isMainQueueReady else { return .nothing }
      set.isMainQueueReady = false
      guard MainQueue.takeNotice() else { return .nothing }
    }
    isDrainingMainQueue = true
    calling(CRL_KIND_MAIN_QUEUE, mode, CallNote(hook: .mainQueue)) { runLoopIsServicingTheMainDispatchQueue() }
    isDrainingMainQueue = false
    innermost.mayAskMainQueue = false
    return .source
  }
}
