// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Synchronization

/// The part of a notification queue that its entries refer to: its center and the thread that it belongs to.
///
/// Queued entries are stored in the thread's hub and retain the outlet, not the queue.
final class Outlet: Sendable {
  let center: NotificationCenter
  private let binding = Binding()
  private let closed = Atomic<Bool>(false)

  /// A lock-protected reference to the hub of the queue's thread.
  private final class Binding: @unchecked Sendable {
    // Sendable: the hub is guarded by the lock.
    private let lock = Lock()
    private var hub: NotificationHub?

    /// The hub that the queue is bound to, while its thread has not ended.
    var living: NotificationHub? {
      let bound = lock.withLock { hub }
      return bound?.isOver == false ? bound : nil
    }

    /// Binds the queue to a hub, unless it is bound to another that has not ended, and returns the resulting hub.
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

  /// The result of using the queue from the calling thread.
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

  /// Whether the queue was released, so that none of its notifications are posted; can be called from any thread.
  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Checks whether the calling thread may use the queue, and binds an unbound queue to it.
  func claim() -> Claim {
    if let bound = binding.living { return bound.isCallers ? .own(bound) : .foreign(bound) }
    guard let mine = NotificationHub.current else { return .ended }
    // If several threads are first at the same time, one of them succeeds.
    let bound = binding.bind(to: mine)
    return bound === mine ? .own(bound) : .foreign(bound)
  }

  /// Closes the queue, so that its thread drops queued notifications, now or when it next encounters them.
  ///
  /// Can be called from any thread, after the last use of the queue.
  func close() {
    closed.store(true, ordering: .releasing)
    let hub = binding.take()
    if let hub, hub.isCallers { hub.drop(outlet: self) }
  }
}
