// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import Foundation
public import RunLoopCore

public import class RunLoopCore.RunLoop

/// A buffer in front of a notification center, which posts at the end of a pass or when the run loop is idle, and can
/// merge notifications that are queued repeatedly.
///
/// ```swift
/// let changed = Notification(name: .documentChanged, object: document)
/// // However often this is called in one pass, the observers are notified once.
/// NotificationQueue.default.enqueue(changed, postingStyle: .asap)
/// ```
///
/// A queue posts to its center on its own thread, from the thread's run loop, in the order in which the notifications
/// were queued. It does not keep the loop alive: a notification for a mode that does not run waits until it does.
/// While the loop runs, it does not sleep before it has posted the notifications it can.
///
/// **Threads.** Every thread has a ``default`` queue and may have more. A queue belongs to the thread that first uses
/// it, until that thread ends. Any thread may hold a reference, but calls from another thread are rejected: nothing is
/// queued, posted or removed, the call is counted in ``/RunLoopCore/RunLoop/Statistics/rejectionCount``, and a
/// diagnostic is written to standard error. (A notification is not Sendable, so it could not be handed over either.)
///
/// **The end.** Notifications that are still queued when the thread ends, or when the queue is released, are released
/// without being posted, always on the queue's own thread. They are counted in
/// ``/RunLoopCore/RunLoop/Statistics/droppedNotificationCount``.
///
/// The corresponding Foundation class is `NotificationQueue`. On Linux that class posts in reverse order, posts
/// notifications meant for an idle loop before others, crashes if an observer queues another notification, and never
/// posts a notification for a mode that is not a common one. This class behaves as documented.
open class NotificationQueue: NSObject, @unchecked Sendable {
  // Sendable: the outlet documents how its state is guarded, and there is no other. A subclass guards its own.
  private let outlet: Outlet

  /// Creates a queue in front of a notification center.
  ///
  /// It belongs to no thread until one uses it. Can be called from any thread. The corresponding Foundation
  /// initializer is `init(notificationCenter:)`.
  public init(notificationCenter: NotificationCenter) {
    outlet = Outlet(notificationCenter)
  }

  deinit {
    outlet.close()
  }

  /// The calling thread's own queue, in front of the default notification center.
  ///
  /// It is created on first use, together with the thread's run loop, and ends with the thread. In a destructor that
  /// runs after the loop's end, each access returns a new queue that is not stored. The corresponding Foundation
  /// property is `default`.
  open class var `default`: NotificationQueue {
    guard let hub = NotificationHub.current else { return NotificationQueue(notificationCenter: .default) }
    if let queue = hub.defaultQueue { return queue }
    let queue = NotificationQueue(notificationCenter: .default)
    _ = queue.outlet.claim()
    hub.defaultQueue = queue
    return queue
  }

  /// Queues a notification for the default mode, replacing those with the same name and sender.
  ///
  /// The corresponding Foundation method is `enqueue(_:postingStyle:)`.
  ///
  /// - Parameters:
  ///   - notification: The notification to post.
  ///   - postingStyle: When to post it.
  open func enqueue(_ notification: Notification, postingStyle: PostingStyle) {
    let site = crl_call_site()
    // The call below comes from here and not from the user, so the user's call site is recorded first.
    let hub = site == 0 ? nil : NotificationHub.current
    hub?.caller = Origin(site: site)
    enqueue(notification, postingStyle: postingStyle, coalesceMask: [.onName, .onSender], forModes: nil)
    hub?.caller = .unknown
  }

  /// Queues a notification, replacing queued notifications that match it.
  ///
  /// Matching notifications are removed first, as by ``dequeueNotifications(matching:coalesceMask:)``, regardless of
  /// their style and modes. So the last of several matching notifications remains, at the end of the queue. The
  /// calling thread must be the queue's. The corresponding Foundation method is
  /// `enqueue(_:postingStyle:coalesceMask:forModes:)`.
  ///
  /// - Parameters:
  ///   - notification: The notification to post.
  ///   - postingStyle: When to post it.
  ///   - coalesceMask: The properties in which queued notifications must match. If it is empty, none do.
  ///   - modes: The modes of the run loop in which the notification may be posted, where
  ///     ``/RunLoopCore/RunLoop/Mode/common`` means all common modes. If it is nil or empty, the default mode is used.
  ///     A notification with the style ``PostingStyle/now`` is posted only if the loop runs in one of these modes or
  ///     does not run at all. Because no loop ever runs in the common pseudo-mode, that mode matches nothing in this
  ///     case, as in Foundation.
  /// - Complexity: Amortized O(1), or O(*n*) with a mask, where *n* is the number of notifications queued on the
  ///   thread.
  open func enqueue(
    _ notification: Notification, postingStyle: PostingStyle, coalesceMask: NotificationCoalescing,
    forModes modes: [RunLoop.Mode]?
  ) {
    let site = crl_call_site()
    let claim = outlet.claim()
    if case .foreign(let hub) = claim { return hub.rejectForeignThread("enqueue") }
    if !coalesceMask.isEmpty { dequeueNotifications(matching: notification, coalesceMask: coalesceMask) }
    let modes = modes.flatMap { $0.isEmpty ? nil : $0 } ?? [.default]
    if postingStyle == .now {
      let mode = RunLoop.current.currentMode
      if mode.map(modes.contains) ?? true { outlet.center.post(notification) }
    } else if case .own(let hub) = claim {
      let origin = hub.caller.site == 0 ? Origin(site: site) : hub.caller
      hub.enqueue(notification, from: outlet, style: postingStyle, modes: modes, origin)
    } else {
      Diagnostic.endedLoop.report(
        "the notification \(notification.name.rawValue) was not queued, because the run loop of "
          + "\(RunLoop.callingThreadDescription) has ended: post it to the center instead")
    }
  }

  /// Removes the queued notifications that match a notification, without posting them.
  ///
  /// A notification that is being posted is no longer queued. The calling thread must be the queue's. The
  /// corresponding Foundation method is `dequeueNotifications(matching:coalesceMask:)`.
  ///
  /// - Parameters:
  ///   - notification: The notification to compare with.
  ///   - coalesceMask: The properties that must match: the name, the sender, or both. If it is empty, nothing matches.
  ///     Senders match if they are the same object or both nil. A value whose type is not a class has no identity and
  ///     matches nothing.
  /// - Complexity: O(*n*), where *n* is the number of notifications queued on the thread.
  open func dequeueNotifications(matching notification: Notification, coalesceMask: NotificationCoalescing) {
    switch outlet.claim() {
    case .own(let hub): hub.dequeue(from: outlet, matching: notification, coalesceMask)
    case .foreign(let hub): hub.rejectForeignThread("dequeueNotifications")
    case .ended: break
    }
  }
}

extension NotificationQueue {
  /// When a queued notification is posted.
  ///
  /// The raw values are Foundation's.
  public enum PostingStyle: UInt, Sendable {
    /// When the run loop is idle.
    ///
    /// The notification is posted when the loop is about to wait: nothing is ready, every notification with the style
    /// ``asap`` has been posted, and the run is not about to end. This is checked again before each notification. A
    /// run that does not wait, such as one with a time limit of zero, posts none.
    case whenIdle = 1
    /// At the end of the run loop's pass.
    ///
    /// The notification is posted after the observers of ``/RunLoopCore/RunLoop/Activity/beforeWaiting`` or
    /// ``/RunLoopCore/RunLoop/Activity/exit`` have been called. A loop that is too busy to wait posts it at the end of
    /// the pass after the one in which it was queued. A notification that one of its observers queues is posted at the
    /// next of these stages, and the loop does not sleep before that.
    case asap = 2
    /// Immediately, before the call returns.
    ///
    /// Unlike a notification posted directly to the center, it replaces queued notifications that match it.
    case now = 3
  }

  /// The properties by which notifications are matched when one replaces others.
  ///
  /// With both options, name and sender must match. The raw values are Foundation's.
  public struct NotificationCoalescing: OptionSet, Sendable {
    /// The raw value.
    public let rawValue: UInt

    /// Creates a value from its raw value.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Notifications are not merged.
    public static let none = NotificationCoalescing([])
    /// The names are equal.
    public static let onName = NotificationCoalescing(rawValue: 1)
    /// The senders are the same object.
    public static let onSender = NotificationCoalescing(rawValue: 2)
  }
}
