// SPDX-License-Identifier: Apache-2.0

/// The events that were read and are still to be handled, in order.
///
/// A drag that follows a drag of the same button replaces it, and so does a movement that follows a movement; nothing
/// else is dropped or reordered.
struct EventQueue {
  /// What is handled in its turn.
  enum Entry: Hashable {
    case input(InputEvent)
    /// The program was suspended: what is held down may have been released since.
    case interruption
  }

  private var entries = ContiguousArray<Entry>()
  private var first = 0
  /// The wait of the next entry, if that is a press.
  private var hold = Hold.none

  private enum Hold: Hashable {
    case none
    case held
    case released
  }

  init() {}

  /// How many entries are waiting.
  var count: Int { entries.count - first }

  /// Adds an entry at the end, or lets it replace the last.
  mutating func append(_ entry: Entry) {
    if count > 0, entry.replaces(entries[entries.count - 1]) {
      entries[entries.count - 1] = entry
    } else {
      entries.append(entry)
    }
  }

  /// Makes the next entry wait until ``releasePress()`` if it presses a button of the mouse and has not waited before;
  /// returns whether it waits.
  mutating func holdPress() -> Bool {
    guard nextIsPress, hold != .released else { return false }
    hold = .held
    return true
  }

  /// Ends the wait of the next entry, which does not wait again.
  mutating func releasePress() {
    if hold == .held { hold = .released }
  }

  /// Whether the next entry presses a button of the mouse.
  private var nextIsPress: Bool {
    guard first < entries.count, case .input(.mouse(let event)) = entries[first], case .press = event.action else {
      return false
    }
    return true
  }

  /// Takes the first entry out; nil if there is none.
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
