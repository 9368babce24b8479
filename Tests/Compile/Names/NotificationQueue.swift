// SPDX-License-Identifier: Apache-2.0

// Foundation's notification queue API on Linux. The sections are compiled with Foundation alone and together with
// RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: NotificationQueue: making one
func queues() -> Bool {
  let queue: NotificationQueue = .default
  let other = NotificationQueue(notificationCenter: NotificationCenter())
  return queue === other || queue == NotificationQueue(notificationCenter: .default)
}

// MARK: NotificationQueue: posting
func post(_ name: Notification.Name, to queue: NotificationQueue) {
  let notification = Notification(name: name, object: nil, userInfo: ["key": 1])
  queue.enqueue(notification, postingStyle: .now)
  queue.enqueue(notification, postingStyle: NotificationQueue.PostingStyle.asap)
  queue.enqueue(notification, postingStyle: .whenIdle, coalesceMask: [.onName, .onSender], forModes: [.common])
  queue.enqueue(notification, postingStyle: .asap, coalesceMask: .none, forModes: nil)
  queue.enqueue(notification, postingStyle: .asap, coalesceMask: [], forModes: [RunLoop.Mode("mine")])
  queue.dequeueNotifications(matching: notification, coalesceMask: .onName)
}

// MARK: NotificationQueue: its styles and masks
func styles() -> Bool {
  let style: NotificationQueue.PostingStyle? = NotificationQueue.PostingStyle(rawValue: 1)
  let mask = NotificationQueue.NotificationCoalescing(rawValue: 3)
  let both: NotificationQueue.NotificationCoalescing = [.onName, .onSender]
  switch style {
  case .whenIdle, .asap, .now: return mask == both && mask.rawValue == style?.rawValue && !mask.contains(.none)
  case nil: return Set([NotificationQueue.PostingStyle.now]).isEmpty
  }
}

// MARK: NotificationQueue: what is printed of it
func queueText(_ queue: NotificationQueue) -> String { "\(queue) \(queue.description) \(queue.debugDescription)" }

// MARK: NotificationQueue: as an object
func queueObject(_ queue: NotificationQueue) -> Bool { queue.isEqual(queue) && queue.hash == queue.hashValue }

// MARK: NotificationQueue: an object of Foundation
func object(_ queue: NotificationQueue) -> NSObject { queue }

// MARK: NotificationQueue: a subclass
// Porting: `class Forwarder: NotificationQueue`
final class Forwarder: NotificationQueue {
  override func enqueue(_ notification: Notification, postingStyle: NotificationQueue.PostingStyle) {
    super.enqueue(notification, postingStyle: postingStyle)
  }
}
