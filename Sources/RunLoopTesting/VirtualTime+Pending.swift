// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension VirtualTime {
  /// An event that is to happen at a time.
  public struct Pending: Hashable, Sendable {
    /// The kinds of pending events.
    public enum Kind: Hashable, Sendable {
      /// A timer of a loop, in a mode; a sleep of a task that prefers a resident thread is also one.
      case timer(mode: RunLoop.Mode)
      /// An action that was passed to ``VirtualTime/at(_:do:)``, or a sleep on ``VirtualTime/clock``.
      case event(String)
    }

    /// The kind of event.
    public let kind: Kind
    /// When the event is due, counted from the beginning; nil for a timer that is parked.
    public let deadline: Duration?
    /// The time between two dates of a repeating timer; zero for a single event.
    public let interval: Duration
    /// How much later a timer may fire.
    public let tolerance: Duration
    /// The thread of the loop, or nil for an event that belongs to no loop.
    public let thread: String?
  }

  /// When the next event happens; nil if there is none.
  ///
  /// On a thread with a loop on this time it is the first date at which that loop would wake in the default mode, or
  /// another loop wakes, or an action of the script happens. The thread that owns the time waits here until the other
  /// threads on the time sleep.
  public var nextDeadline: SuspendingClock.Instant? { nextTick(.default)?.instant }

  /// How long it is until the next event happens; nil if there is none.
  ///
  /// See ``nextDeadline``.
  public var timeUntilNext: Duration? {
    nextTick(.default).map { .nanoseconds(max(0, $0 - timeline.now)) }
  }

  /// The pending events that have a date or could have one, in the order of the dates.
  ///
  /// Work that is ready already is not listed; nor are sources, descriptors and ports, whose events are not
  /// predictable.
  ///
  /// - Complexity: O(n log n).
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
    // Those of one date stay in their order.
    let keyed = found.enumerated().map { (key: $1.deadline ?? .nanoseconds(Int64.max), place: $0, value: $1) }
    return keyed.sorted { ($0.key, $0.place) < ($1.key, $1.place) }.map(\.value)
  }

  /// What those who sleep wait for, as text.
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
