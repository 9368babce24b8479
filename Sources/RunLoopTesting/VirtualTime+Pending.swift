// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension VirtualTime {
  /// An event that is scheduled on a virtual time.
  public struct Pending: Hashable, Sendable {
    /// The kinds of pending events.
    public enum Kind: Hashable, Sendable {
      /// A timer of a loop in a mode, including the sleep of a task that prefers a resident thread.
      case timer(mode: RunLoop.Mode)
      /// An action passed to ``VirtualTime/at(_:do:)``, or a sleep on ``VirtualTime/clock``.
      case event(String)
    }

    /// The kind of event.
    public let kind: Kind
    /// The time at which the event is due, since the beginning, or nil for a parked timer.
    public let deadline: Duration?
    /// The interval of a repeating timer, or zero for a single event.
    public let interval: Duration
    /// The tolerance of a timer.
    public let tolerance: Duration
    /// The thread of the loop, or nil for an event without a loop.
    public let thread: String?
  }

  /// The date of the next event, or nil if there is none.
  ///
  /// On a thread with a loop on this time, this is the first date at which that loop would wake in the default mode,
  /// another loop wakes, or a scripted action runs. On the thread that owns the time, this waits until the other
  /// threads on it sleep.
  public var nextDeadline: SuspendingClock.Instant? { nextTick(.default)?.instant }

  /// The time until ``nextDeadline``, or nil if there is none.
  public var timeUntilNext: Duration? {
    nextTick(.default).map { .nanoseconds(max(0, $0 - timeline.now)) }
  }

  /// The pending events, in the order of their dates.
  ///
  /// The list excludes work that is already ready, and the unpredictable events of sources, descriptors and ports.
  ///
  /// - Complexity: O(n log n) in the number of events.
  public var pending: [Pending] {
    var found = timeline.pendingEvents.map { event in
      Pending(
        kind: .event(event.name), deadline: .nanoseconds(event.tick.nanoseconds), interval: .zero, tolerance: .zero,
        thread: nil)
    }
    for member in allMembers {
      guard let loop = member.keeper.loop else { continue }
      found += loop.pendingTimers.map { timer in
        Pending(
          kind: .timer(mode: timer.mode),
          deadline: timer.tick == .never ? nil : .nanoseconds(timer.tick.nanoseconds),
          interval: .nanoseconds(timer.interval), tolerance: .nanoseconds(timer.tolerance),
          thread: member.keeper.sleeper.name)
      }
    }
    // Events with the same date keep their order.
    let keyed = found.enumerated().map { (key: $1.deadline ?? .nanoseconds(Int64.max), place: $0, value: $1) }
    return keyed.sorted { ($0.key, $0.place) < ($1.key, $1.place) }.map(\.value)
  }

  /// Descriptions of what the sleeping loops are waiting for.
  var awaited: [String] {
    allMembers.compactMap { member in
      guard let loop = member.keeper.loop, !loop.takesNoItems else { return nil }
      let (timers, sources) = loop.itemCounts
      let mode = loop.currentMode.map { "the mode \($0)" } ?? "no mode"
      return
        "the loop of \(member.keeper.sleeper.name) sleeps in \(mode), with \(sources) sources, ports and descriptors "
        + "and \(timers) timers without a date in it"
    }
  }
}

extension VirtualTime.Pending: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    var text =
      switch kind {
      case .timer(let mode): "a timer of \(thread ?? "a loop") in the mode \(mode)"
      case .event(let name): name
      }
    text += deadline.map { ", due \($0) after the beginning" } ?? ", without a date"
    if interval > .zero { text += ", every \(interval)" }
    if tolerance > .zero { text += ", at most \(tolerance) later" }
    return text
  }
}
