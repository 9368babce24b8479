// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Synchronization

import class RunLoopCore.RunLoop

/// Everything queued on one thread by all of its notification queues, and the observer that posts it.
///
/// It belongs to the thread's run loop and ends with it. The observer is in a mode of the loop only while a
/// notification waits for that mode.
final class NotificationHub: DeferredWork, @unchecked Sendable {
  // Sendable: used only by the loop's thread, except where noted.

  /// The thread's loop; can be accessed from any thread.
  let loop: RunLoop
  private let over = Atomic<Bool>(false)

  private var asap = NotificationList()
  private var idle = NotificationList()
  private var lastSequence: UInt64 = 0
  /// The value of `lastSequence` at the start of the pass, or zero if there was none.
  private var sequenceAtPass: UInt64 = 0
  private var modes: [RunLoop.Mode] = []
  private var observer: RunLoop.Observer?
  /// The call site of the user, while one function of the queue calls another.
  var caller = Origin.unknown
  /// The thread's default queue, once it has been requested.
  var defaultQueue: NotificationQueue?

  private init(_ loop: RunLoop) {
    self.loop = loop
  }

  /// The calling thread's hub, created if necessary; nil once its loop has ended.
  static var current: NotificationHub? {
    let loop = RunLoop.current
    if let hub = loop.deferredWork as? NotificationHub { return hub }
    guard !loop.takesNoItems else { return nil }
    let hub = NotificationHub(loop)
    loop.deferredWork = hub
    return hub
  }

  /// Whether the hub belongs to the calling thread; can be called from any thread.
  var isCallers: Bool { RunLoop.currentIfMade === loop }

  /// Whether the thread's loop has ended, so that nothing more is queued; can be called from any thread.
  var isOver: Bool { over.load(ordering: .acquiring) }

  /// Counts a call from a foreign thread, and reports the first one; can be called from any thread.
  func rejectForeignThread(_ request: String) {
    loop.countRejection()
    Diagnostic.foreignQueue.report(
      "\(request) of the notification queue of \(loop.threadDescription) was called by \(RunLoop.callingThreadDescription) and "
        + "did nothing: a notification queue is used by its own thread")
  }
}

// MARK: - Queueing and removal
extension NotificationHub {
  func enqueue(
    _ notification: Notification, from outlet: Outlet, style: NotificationQueue.PostingStyle, modes: [RunLoop.Mode],
    _ origin: Origin
  ) {
    guard modes.allSatisfy(watch) else { return }
    lastSequence += 1
    let entry = NotificationList.Entry(
      sequence: lastSequence, notification: notification, modes: modes, outlet: outlet, origin: origin)
    if style == .whenIdle { idle.append(entry) } else { asap.append(entry) }
    wakeHostedLoop()
  }

  /// Wakes the loop if it is sleeping inside another loop, one of whose callbacks has just queued a notification for
  /// it.
  private func wakeHostedLoop() {
    // On its own thread, the loop can only be found asleep in that case.
    guard loop.isWaiting, let mode = loop.currentMode else { return }
    if isWaiting(for: mode, isCommon: loop.isInCommonMode) { loop.wakeUp() }
  }

  func dequeue(
    from outlet: Outlet, matching notification: Notification, _ mask: NotificationQueue.NotificationCoalescing
  ) {
    guard !mask.isDisjoint(with: [.onName, .onSender]), asap.count + idle.count > 0 else { return }
    let removed = takeAll(
      .init(
        outlet: outlet, sender: mask.contains(.onSender) ? Sender(notification.object) : nil,
        name: mask.contains(.onName) ? notification.name : nil))
    // Released after the lists have been updated.
    withExtendedLifetime(removed) {}
  }

  func drop(outlet: Outlet) {
    let dropped = takeAll(.init(outlet: outlet))
    loop.countDroppedNotifications(dropped.count)
  }

  func end() {
    observer?.invalidate()
    let dropped = takeAll(.init())
    loop.countDroppedNotifications(dropped.count)
    over.store(true, ordering: .releasing)
    // From here on, a queue may be bound to another thread. Code that runs during these releases finds nothing here.
    let queue = defaultQueue
    defaultQueue = nil
    withExtendedLifetime((dropped, queue)) {}
  }

  private func takeAll(_ criterion: NotificationList.Criterion) -> [NotificationList.Entry] {
    asap.takeAll(criterion) + idle.takeAll(criterion)
  }
}

// MARK: - Posting
extension NotificationHub {
  func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
    asap.isWaiting(for: mode, isCommon: isCommon) || idle.isWaiting(for: mode, isCommon: isCommon)
  }

  private func reach(_ activity: RunLoop.Activity) {
    guard let mode = loop.currentMode else { return }
    let isCommon = loop.isInCommonMode
    switch activity {
    case .entry:
      sequenceAtPass = 0
    case .beforeTimers:
      // A whole pass has ended without a wait.
      postASAP(through: sequenceAtPass, mode, isCommon)
      sequenceAtPass = lastSequence
    case .beforeWaiting:
      postASAP(through: lastSequence, mode, isCommon)
      postIdle(through: lastSequence, mode, isCommon)
    default:
      postASAP(through: lastSequence, mode, isCommon)
    }
    leaveModes()
  }

  private func postASAP(through last: UInt64, _ mode: RunLoop.Mode, _ isCommon: Bool) {
    var posted: UInt64 = 0
    while let entry = asap.takeFirst(after: posted, through: last, for: mode, isCommon: isCommon) {
      posted = entry.sequence
      post(entry)
    }
  }

  private func postIdle(through last: UInt64, _ mode: RunLoop.Mode, _ isCommon: Bool) {
    var posted: UInt64 = 0
    while idle.isWaiting(for: mode, isCommon: isCommon), !asap.isWaiting(for: mode, isCommon: isCommon), loop.isIdle,
      let entry = idle.takeFirst(after: posted, through: last, for: mode, isCommon: isCommon)
    {
      posted = entry.sequence
      post(entry)
    }
  }

  private func post(_ entry: NotificationList.Entry) {
    // A queue that was released on another thread could not remove its entries.
    guard !entry.outlet.isClosed else { return loop.countDroppedNotifications(1) }
    noteCall(for: entry.origin)
    entry.outlet.center.post(entry.notification)
  }
}

// MARK: - The observer and its modes
extension NotificationHub {
  /// Adds the observer to a mode if necessary, or returns false if the loop has ended.
  private func watch(_ mode: RunLoop.Mode) -> Bool {
    if modes.contains(mode) { return true }
    guard loop.add(madeObserver, forMode: mode) else { return false }
    modes.append(mode)
    return true
  }

  private var madeObserver: RunLoop.Observer {
    if let observer { return observer }
    // Last in order, so that notifications queued by other observers are posted in the same stage.
    let made = RunLoop.Observer(
      activities: [.entry, .beforeTimers, .beforeWaiting, .exit], repeats: true, order: .max, isReentrant: true
    ) { [weak self] _, activity in
      self?.reach(activity)
    }
    observer = made
    return made
  }

  /// Removes the observer from the modes for which nothing is queued.
  private func leaveModes() {
    guard let observer else { return }
    let left = modes.filter { !isNamed($0) }
    guard !left.isEmpty else { return }
    modes.removeAll(where: left.contains)
    for mode in left { loop.remove(observer, forMode: mode) }
    // Leaving the common modes also removes it from modes that are named individually, and the objects released by
    // that may have queued more.
    for mode in modes { loop.add(observer, forMode: mode) }
  }

  private func isNamed(_ mode: RunLoop.Mode) -> Bool { asap.names(mode) || idle.names(mode) }
}
