// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Synchronization

import class RunLoopCore.RunLoop

/// Everything that is queued on one thread, by all of its notification queues, and the observer that posts it.
///
/// It hangs on the thread's run loop and ends with it. The observer is in a mode of the loop only while something waits
/// for that mode.
final class NotificationHub: DeferredWork, @unchecked Sendable {
  // Sendable: only the thread of the loop uses it, but for what says otherwise.

  /// The thread's loop.
  ///
  /// Any thread.
  let loop: RunLoop
  private let over = Atomic<Bool>(false)

  private var asap = NotificationList()
  private var idle = NotificationList()
  /// The number of the last notification that was queued.
  private var lastSequence: UInt64 = 0
  /// What it was when the pass began, and zero if none has.
  private var sequenceAtPass: UInt64 = 0
  /// The modes that the observer is in.
  private var modes: [RunLoop.Mode] = []
  private var observer: RunLoop.Observer?
  /// Where a notification is being queued, if what queues it is called by another function of the queue.
  var caller = Origin.unknown
  /// The thread's default queue, once somebody has asked for it.
  var defaultQueue: NotificationQueue?

  private init(_ loop: RunLoop) {
    self.loop = loop
  }

  /// The calling thread's, made now if need be; nil once its loop has ended.
  static var current: NotificationHub? {
    let loop = RunLoop.current
    if let hub = loop.deferredWork as? NotificationHub { return hub }
    guard !loop.takesNoItems else { return nil }
    let hub = NotificationHub(loop)
    loop.deferredWork = hub
    return hub
  }

  /// Whether the calling thread is the one whose hub this is.
  ///
  /// Any thread.
  var isCallers: Bool { RunLoop.currentIfMade === loop }

  /// Whether the thread's loop has ended, and nothing is queued here any more.
  ///
  /// Any thread.
  var isOver: Bool { over.load(ordering: .acquiring) }

  /// Counts what another thread has asked for, and reports the first time.
  ///
  /// Any thread.
  func rejectForeignThread(_ request: String) {
    loop.countRejection()
    Diagnostic.foreignQueue.report(
      "\(request) of the notification queue of \(loop.threadDescription) was called by \(RunLoop.callingThreadDescription) and "
        + "did nothing: a notification queue is used by its own thread")
  }
}

// What comes and goes.
extension NotificationHub {
  /// Queues a notification; rejects it if the loop has ended.
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

  /// Wakes the loop if it sleeps in another's, one of whose call-outs has queued what this sleep keeps waiting.
  private func wakeHostedLoop() {
    // Its own thread finds it asleep only there.
    guard loop.isWaiting, let mode = loop.currentMode else { return }
    if isWaiting(for: mode, isCommon: loop.isInCommonMode) { loop.wakeUp() }
  }

  /// Takes the notifications of one queue that match another.
  func dequeue(
    from outlet: Outlet, matching notification: Notification, _ mask: NotificationQueue.NotificationCoalescing
  ) {
    guard !mask.isDisjoint(with: [.onName, .onSender]), asap.count + idle.count > 0 else { return }
    let removed = takeAll(
      .init(
        outlet: outlet, sender: mask.contains(.onSender) ? Sender(notification.object) : nil,
        name: mask.contains(.onName) ? notification.name : nil))
    // Released when the lists are at rest.
    withExtendedLifetime(removed) {}
  }

  /// Drops and counts what is left of a queue that is no longer there.
  func drop(outlet: Outlet) {
    let dropped = takeAll(.init(outlet: outlet))
    loop.countDroppedNotifications(dropped.count)
  }

  func end() {
    observer?.invalidate()
    let dropped = takeAll(.init())
    loop.countDroppedNotifications(dropped.count)
    over.store(true, ordering: .releasing)
    // From here on a queue may be bound to another thread. What this releases may ask for anything, and finds nothing.
    let queue = defaultQueue
    defaultQueue = nil
    withExtendedLifetime((dropped, queue)) {}
  }

  private func takeAll(_ criterion: NotificationList.Criterion) -> [NotificationList.Entry] {
    asap.takeAll(criterion) + idle.takeAll(criterion)
  }
}

// Posting.
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
      // A whole pass has gone by without a wait.
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
    // A queue that another thread has released could not be notified.
    guard !entry.outlet.isClosed else { return loop.countDroppedNotifications(1) }
    noteCall(for: entry.origin)
    entry.outlet.center.post(entry.notification)
  }
}

// The observer and its modes.
extension NotificationHub {
  /// Puts the observer into a mode, if it is not there; false if the loop has ended.
  private func watch(_ mode: RunLoop.Mode) -> Bool {
    if modes.contains(mode) { return true }
    guard loop.add(madeObserver, forMode: mode) else { return false }
    modes.append(mode)
    return true
  }

  private var madeObserver: RunLoop.Observer {
    if let observer { return observer }
    // Behind all others, so that what they queue is posted at the same stage.
    let made = RunLoop.Observer(
      activities: [.entry, .beforeTimers, .beforeWaiting, .exit], repeats: true, order: .max, isReentrant: true
    ) { [weak self] _, activity in
      self?.reach(activity)
    }
    observer = made
    return made
  }

  /// Takes the observer out of the modes for which nothing waits.
  private func leaveModes() {
    guard let observer else { return }
    let left = modes.filter { !isNamed($0) }
    guard !left.isEmpty else { return }
    modes.removeAll(where: left.contains)
    for mode in left { loop.remove(observer, forMode: mode) }
    // Leaving the common modes takes it out of modes that are named by themselves too; and what leaving a mode has
    // released may have queued more for it.
    for mode in modes { loop.add(observer, forMode: mode) }
  }

  private func isNamed(_ mode: RunLoop.Mode) -> Bool { asap.names(mode) || idle.names(mode) }
}
