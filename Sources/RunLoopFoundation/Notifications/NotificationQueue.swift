// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import Foundation
public import RunLoopCore

public import class RunLoopCore.RunLoop

/// A buffer in front of a notification center: it posts at the end of a pass, or when the run loop has nothing to do,
/// and can post once what was queued many times.
///
/// ```swift
/// let changed = Notification(name: .documentChanged, object: document)
/// // However often this is called in one pass, the observers hear of it once.
/// NotificationQueue.default.enqueue(changed, postingStyle: .asap)
/// ```
///
/// A queue posts to its center on its thread, from the thread's run loop, in the order in which the notifications were
/// queued. It does not keep the loop alive: a notification for a mode in which nothing runs waits until something does.
/// Queued notifications keep the loop from sleeping instead: a running loop does not wait before it has posted what it
/// can.
///
/// **Threads.** Every thread has a ``default`` queue and may have more. A queue belongs to the thread that first uses
/// it, until that thread ends. Any thread may hold it, but calls on another thread are rejected: nothing is queued,
/// posted or removed, ``/RunLoopCore/RunLoop/Statistics/rejectionCount`` counts it, and it is reported on the standard
/// error. (A notification is not Sendable, so it could not be handed over either.)
///
/// **The end.** Notifications that are still queued when the thread ends, or when the queue itself is released, are
/// released without being posted, always on the queue's own thread, and
/// ``/RunLoopCore/RunLoop/Statistics/droppedNotificationCount`` counts them.
///
/// The corresponding Foundation class is `NotificationQueue`. On Linux that class posts in reverse order, posts
/// notifications that should wait for an idle loop before others, ends the process if an observer queues another
/// notification, and never posts a notification for a mode that is not a common one; here the class behaves as
/// documented.
open class NotificationQueue: NSObject, @unchecked Sendable {
  // Sendable: the outlet says what guards it, and is all that there is. A subclass guards its own.
  private let outlet: Outlet

  /// Makes a queue in front of a notification center.
  ///
  /// It belongs to no thread until one uses it. Can be called from any thread. The corresponding Foundation initializer
  /// is `init(notificationCenter:)`.
  public init(notificationCenter: NotificationCenter) {
    outlet = Outlet(notificationCenter)
  }

  deinit {
    outlet.close()
  }

  /// The calling thread's own queue, in front of the default notification center.
  ///
  /// It is made at the first request, with the thread's run loop, and ends with the thread. In a destructor that runs
  /// after the loop's end, it is a queue that is kept nowhere. The corresponding Foundation property is `default`.
  open class var `default`: NotificationQueue {
    guard let hub = NotificationHub.current else { return NotificationQueue(notificationCenter: .default) }
    if let queue = hub.defaultQueue { return queue }
    let queue = NotificationQueue(notificationCenter: .default)
    _ = queue.outlet.claim()
    hub.defaultQueue = queue
    return queue
  }

  /// Queues a notification for the default mode, in place of those of the same name and sender.
  ///
  /// The corresponding Foundation method is `enqueue(_:postingStyle:)`.
  ///
  /// - Parameters:
  ///   - notification: The notification to post.
  ///   - postingStyle: When to post it.
  open func enqueue(_ notification: Notification, postingStyle: PostingStyle) {
    let site = crl_call_site()
    // The other has been called from here, but not by the user.
    let hub = site == 0 ? nil : NotificationHub.current
    hub?.caller = Origin(site: site)
    enqueue(notification, postingStyle: postingStyle, coalesceMask: [.onName, .onSender], forModes: nil)
    hub?.caller = .unknown
  }

  /// Queues a notification, in place of those that are queued and match it.
  ///
  /// Matching notifications are removed first, as ``dequeueNotifications(matching:coalesceMask:)`` removes them, no
  /// matter with which style and modes they were queued. So of several that match, the last stays, at the end of the
  /// queue. The calling thread must be the queue's. The corresponding Foundation method is
  /// `enqueue(_:postingStyle:coalesceMask:forModes:)`.
  ///
  /// - Parameters:
  ///   - notification: The notification to post.
  ///   - postingStyle: When to post it.
  ///   - coalesceMask: In what the queued notifications must match it; if empty, none does.
  ///   - modes: The modes of the run loop in which it may be posted: ``/RunLoopCore/RunLoop/Mode/common`` stands for
  ///     all common modes; nil, or no mode, means the default mode. A notification of style ``PostingStyle/now`` is
  ///     posted if the loop runs in one of these modes or does not run, and otherwise not at all; since no loop is ever
  ///     in the common pseudo-mode, that mode stands for nothing there, as in Foundation.
  /// - Complexity: O(1) amortised, and O(n) in the notifications that are queued on the thread if there is a mask.
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

  /// Takes the queued notifications that match one out of the queue, without posting them.
  ///
  /// A notification that is being posted is no longer queued. The calling thread must be the queue's. The corresponding
  /// Foundation method is `dequeueNotifications(matching:coalesceMask:)`.
  ///
  /// - Parameters:
  ///   - notification: The notification that they match.
  ///   - coalesceMask: In what they must match it: in the name, the sender, or both; if empty, none does. Senders match
  ///     if they are the same object, or both nil. A value of a type that is not a class has no identity and matches
  ///     nothing.
  /// - Complexity: O(n) in the notifications that are queued on the thread.
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
    /// When the run loop has nothing to do.
    ///
    /// The notification is posted when the loop is about to wait: nothing is ready, every notification of style
    /// ``asap`` has been posted, and the run is not about to end. This is checked again before each notification. A run
    /// that does not wait, such as one whose time is zero, posts none.
    case whenIdle = 1
    /// At the end of the pass of the run loop.
    ///
    /// The notification is posted when the loop has called the observers of
    /// ``/RunLoopCore/RunLoop/Activity/beforeWaiting`` or ``/RunLoopCore/RunLoop/Activity/exit``. A loop that is too
    /// busy to wait posts it when the pass after the one in which it was queued is over. A notification that its
    /// observer queues in turn is posted at the next of these stages, and the loop does not sleep before.
    case asap = 2
    /// At once, before the call returns.
    ///
    /// Unlike a notification that is posted to the center itself, it takes the place of queued notifications that match
    /// it.
    case now = 3
  }

  /// The properties in which notifications match, so that one takes the place of the others.
  ///
  /// With both options, name and sender must match. The raw values are Foundation's.
  public struct NotificationCoalescing: OptionSet, Sendable {
    /// The raw value.
    public let rawValue: UInt

    /// Makes a value from its raw value.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// No notification takes another's place.
    public static let none = NotificationCoalescing([])
    /// The names are equal.
    public static let onName = NotificationCoalescing(rawValue: 1)
    /// The senders are the same object.
    public static let onSender = NotificationCoalescing(rawValue: 2)
  }
}
