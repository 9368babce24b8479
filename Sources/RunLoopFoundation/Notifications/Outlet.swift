// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Synchronization

/// What a notification queue is, apart from its notifications: its center, and the thread that it belongs to.
///
/// What is queued lies in the thread's hub and holds the outlet, not the queue.
final class Outlet: Sendable {
  let center: NotificationCenter
  private let binding = Binding()
  private let closed = Atomic<Bool>(false)

  /// The hub of the thread that the queue belongs to.
  private final class Binding: @unchecked Sendable {
    // Sendable: the hub is guarded by the lock.
    private let lock = Lock()
    private var hub: NotificationHub?

    /// The hub that the queue is bound to, as long as its thread has not ended.
    var living: NotificationHub? {
      let bound = lock.withLock { hub }
      return bound?.isOver == false ? bound : nil
    }

    /// Binds the queue to a hub, unless it is bound to another that lives; returns the one that it is bound to then.
    func bind(to other: NotificationHub) -> NotificationHub {
      lock.lock()
      let before = hub
      let bound = if let before, !before.isOver { before } else { other }
      hub = bound
      lock.unlock()
      // Released outside the lock.
      withExtendedLifetime(before) {}
      return bound
    }

    func take() -> NotificationHub? { lock.withLock { hub.take() } }
  }

  /// Whether the calling thread may use the queue.
  enum Claim {
    case own(NotificationHub)
    /// The queue belongs to the thread of another hub.
    case foreign(NotificationHub)
    /// The run loop of the calling thread has ended.
    case ended
  }

  init(_ center: NotificationCenter) {
    self.center = center
  }

  /// Whether the queue is no longer there: nothing of it is to be posted.
  ///
  /// Any thread.
  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Asks for the queue on behalf of the calling thread, which owns it from now on if nobody else does.
  func claim() -> Claim {
    if let bound = binding.living { return bound.isCallers ? .own(bound) : .foreign(bound) }
    guard let mine = NotificationHub.current else { return .ended }
    // Of several threads that are the first, one gets it.
    let bound = binding.bind(to: mine)
    return bound === mine ? .own(bound) : .foreign(bound)
  }

  /// Ends the queue: its thread drops what is still queued, now, or when it next comes across it.
  ///
  /// Any thread, once nobody else can use the queue.
  func close() {
    closed.store(true, ordering: .releasing)
    let hub = binding.take()
    if let hub, hub.isCallers { hub.drop(outlet: self) }
  }
}
