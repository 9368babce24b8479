// SPDX-License-Identifier: Apache-2.0

/// The events that were read and not handled yet, in order.
///
/// A drag replaces a preceding drag of the same button, and a move replaces a preceding move. Other events are neither
/// dropped nor reordered.
struct EventQueue {
  /// An event, or a marker between events.
  enum Entry: Hashable {
    case input(InputEvent)
    /// The program was suspended, and buttons that were held down may have been released since.
    case interruption
  }

  private var entries = ContiguousArray<Entry>()
  private var first = 0
  /// Whether the next entry is waiting for gesture actions.
  private var hold = Hold.none

  private enum Hold: Hashable {
    case none
    case held
    case released
  }

  init() {}

  var count: Int { entries.count - first }

  /// Appends an entry, or replaces the last entry with it.
  mutating func append(_ entry: Entry) {
    if count > 0, entry.replaces(entries[entries.count - 1]) {
      entries[entries.count - 1] = entry
    } else {
      entries.append(entry)
    }
  }

  /// Holds the next entry until ``releaseNext()`` if actions can affect it and it was not held before.
  ///
  /// - Returns: Whether the entry is held.
  mutating func holdNext() -> Bool {
    guard nextDependsOnActions, hold != .released else { return false }
    hold = .held
    return true
  }

  /// Ends the wait of the next entry, which does not wait again.
  mutating func releaseNext() {
    if hold == .held { hold = .released }
  }

  /// Whether actions can change which view receives the next entry, through the focus or the views below the mouse.
  private var nextDependsOnActions: Bool {
    guard first < entries.count, case .input(let event) = entries[first] else { return false }
    switch event {
    case .key, .paste: return true
    case .mouse(let event):
      switch event.action {
      case .press, .wheel: return true
      default: return false
      }
    default: return false
    }
  }

  /// Removes and returns the first entry, or returns nil if there is none.
  mutating func takeFirst() -> Entry? {
    guard first < entries.count else { return nil }
    hold = .none
    defer {
      first += 1
      if first == entries.count {
        entries.removeAll(keepingCapacity: true)
        first = 0
      }
    }
    return entries[first]
  }
}

extension EventQueue.Entry {
  fileprivate func replaces(_ other: Self) -> Bool {
    guard case .input(.mouse(let event)) = self, case .input(.mouse(let before)) = other else { return false }
    switch (event.action, before.action) {
    case (.drag(let button), .drag(let other)): return button == other
    case (.move, .move): return true
    default: return false
    }
  }
}
