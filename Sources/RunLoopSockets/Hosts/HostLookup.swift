// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A lookup of a host in progress.
public final class HostLookup: Sendable {
  typealias Body = @Sendable (HostLookup, HostResolver.Answer) -> Void

  let query: HostResolver.Query
  private let body: HandlerBox<Body>
  private let isOver = Atomic<Bool>(false)
  /// Called on cancellation, to remove the lookup from the queue or to stop counting its thread.
  private let abandon = HandlerBox<@Sendable (HostLookup) -> Void>()

  private let timer = HandlerBox<Timer>()

  init(_ query: HostResolver.Query, _ body: @escaping Body) {
    self.query = query
    self.body = HandlerBox(body)
  }

  /// Cancels the lookup.
  ///
  /// The block is released and will not be called, unless the call is in progress. A lookup that is queued leaves the
  /// queue. A lookup that the system is processing is left to finish, but does not delay others. Can be called from any
  /// thread. Calling it again has no effect.
  ///
  /// - Complexity: O(1).
  public func cancel() { if claim() { giveUp() } }

  /// Whether the lookup was cancelled, or its block was called or was released because its loop has ended.
  ///
  /// Can be called from any thread.
  public var isFinished: Bool { isOver.load(ordering: .acquiring) }

  /// Claims the right to call the block, or returns false if it was already claimed.
  func claim() -> Bool { !isOver.exchange(true, ordering: .acquiringAndReleasing) }

  /// Starts the timeout with a timer that the caller then adds to a loop.
  func start(_ timer: Timer) {
    self.timer.put(timer)
    if isFinished { stopTimer() }
  }

  func stopTimer() { timer.take()?.invalidate() }

  /// Releases the block, and leaves the queue or the thread.
  func giveUp() {
    stopTimer()
    body.take()
    abandon.take()?(self)
  }

  func onGivingUp(_ body: @escaping @Sendable (HostLookup) -> Void) {
    abandon.put(body)
    // The lookup was given up in the meantime.
    if isFinished { abandon.take()?(self) }
  }

  func finish(_ answer: HostResolver.Answer) {
    abandon.take()
    body.take()?(self, answer)
  }
}
