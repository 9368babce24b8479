// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestSupport

/// A notification queue with its own center, on a thread on virtual time, and a journal of what is posted.
final class NotificationRig: @unchecked Sendable {
  // Sendable: the lock guards the reactions; the rest is constant and Sendable.
  let time: SteppedTime
  let loop: RunLoop
  let journal: Log
  let center = NotificationCenter()
  let queue: NotificationQueue

  private let lock = Lock()
  private var reactions: [String: @Sendable () -> Void] = [:]

  fileprivate init(_ time: SteppedTime, _ loop: RunLoop, _ journal: Log) {
    self.time = time
    self.loop = loop
    self.journal = journal
    queue = NotificationQueue(notificationCenter: center)
    hear(center)
  }

  /// Journals everything that a center posts, and then calls the reactions.
  func hear(_ center: NotificationCenter, prefix: String = "") {
    _ = center.addObserver(forName: nil, object: nil, queue: nil) { [weak self] notification in
      let name = prefix + notification.name.rawValue
      self?.journal.write(name)
      self?.takeReaction(to: name)?()
    }
  }

  private func takeReaction(to name: String) -> (@Sendable () -> Void)? {
    lock.withLock { reactions.removeValue(forKey: name) }
  }

  /// Calls a reaction the next time a notification with this name is posted.
  func on(_ name: String, _ reaction: @escaping @Sendable () -> Void) {
    lock.withLock { reactions[name] = reaction }
  }

  /// Queues a notification, by default without coalescing.
  func enqueue(
    _ name: String, _ style: NotificationQueue.PostingStyle = .asap, from sender: Any? = nil,
    on mask: NotificationQueue.NotificationCoalescing = .none, modes: [RunLoop.Mode]? = nil
  ) {
    queue.enqueue(.named(name, from: sender), postingStyle: style, coalesceMask: mask, forModes: modes)
  }

  func dequeue(_ name: String, from sender: Any? = nil, on mask: NotificationQueue.NotificationCoalescing) {
    queue.dequeueNotifications(matching: .named(name, from: sender), coalesceMask: mask)
  }

  func observeStages(mode: RunLoop.Mode = .default) {
    loop.observe(journal, mode: mode)
  }

  func once(
    _ activity: RunLoop.Activity, order: Int = 0, mode: RunLoop.Mode = .default, _ body: @escaping @Sendable () -> Void
  ) {
    loop.add(RunLoop.Observer(activities: activity, repeats: false, order: order) { _, _ in body() }, forMode: mode)
  }

  /// Adds a source that is never signaled, which keeps the mode alive.
  func keepAlive(_ mode: RunLoop.Mode = .default) { loop.add(RunLoop.Source {}, forMode: mode) }

  func signal(mode: RunLoop.Mode = .default, _ body: @escaping @Sendable () -> Void) {
    let source = RunLoop.Source(perform: body)
    loop.add(source, forMode: mode)
    source.signal()
  }

  /// Calls a body after a number of milliseconds of virtual time, from a timer.
  func after(_ milliseconds: Int, mode: RunLoop.Mode = .default, _ body: @escaping @Sendable () -> Void) {
    let date = loop.now.advanced(by: .milliseconds(milliseconds))
    loop.add(Timer(deadline: date) { _ in body() }, forMode: mode)
  }

  /// Runs a mode, by default for one virtual second, and journals the result.
  func run(mode: RunLoop.Mode = .default, for time: Duration = .seconds(1)) {
    journal.write("\(loop.run(mode: mode, for: time))")
  }

  /// Whether a mode contains an observer of notification queues.
  func isWatched(_ mode: RunLoop.Mode) -> Bool {
    let description = loop.debugDescription
    guard let start = description.range(of: "<RunLoop.Mode>{name = \(mode),") else { return false }
    let end = description.range(of: "timers = ", range: start.upperBound..<description.endIndex)
    return description[start.upperBound..<(end?.lowerBound ?? description.endIndex)].contains("order = \(Int.max)")
  }
}

/// Runs a body with a rig on its own thread, and returns the journal.
func journal(_ body: @escaping @Sendable (NotificationRig) -> Void) -> String {
  let journal = Log()
  onVirtualTime { time, loop in body(NotificationRig(time, loop, journal)) }
  return journal.text
}

extension Notification {
  static func named(_ name: String, from sender: Any? = nil) -> Notification {
    Notification(name: Name(name), object: sender)
  }
}
