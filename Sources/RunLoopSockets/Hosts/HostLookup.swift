// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A lookup of a host that is under way.
public final class HostLookup: Sendable {
  typealias Body = @Sendable (HostLookup, HostResolver.Answer) -> Void

  let query: HostResolver.Query
  private let body: HandlerBox<Body>
  private let isOver = Atomic<Bool>(false)
  /// What has to be done when it is cancelled: whoever looks it up is free for others.
  private let abandon = HandlerBox<@Sendable (HostLookup) -> Void>()

  /// What ends the time that there is.
  private let timer = HandlerBox<Timer>()

  init(_ query: HostResolver.Query, _ body: @escaping Body) {
    self.query = query
    self.body = HandlerBox(body)
  }

  /// Drops the result: unless its block is being called, it is not called any more, and is released.
  ///
  /// A lookup that waits for its turn leaves the queue. A lookup that the system is answering is left to end, and does
  /// not keep others waiting. Can be called from any thread. Calling it again has no effect.
  ///
  /// - Complexity: O(1).
  public func cancel() { if claim() { giveUp() } }

  /// Whether the lookup was cancelled, or its block was called, or released uncalled as its loop has ended.
  ///
  /// Can be called from any thread.
  public var isFinished: Bool { isOver.load(ordering: .acquiring) }

  /// Takes the right to call the block.
  func claim() -> Bool { !isOver.exchange(true, ordering: .acquiringAndReleasing) }

  /// Counts its time by a timer, which is added to a loop after this.
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

  /// Says what to do when the lookup is given up.
  func onGivingUp(_ body: @escaping @Sendable (HostLookup) -> Void) {
    abandon.put(body)
    // It was given up meanwhile.
    if isFinished { abandon.take()?(self) }
  }

  func finish(_ answer: HostResolver.Answer) {
    abandon.take()
    body.take()?(self, answer)
  }
}
