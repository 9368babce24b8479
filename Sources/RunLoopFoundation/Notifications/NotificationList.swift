// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore

import class RunLoopCore.RunLoop

/// The notifications of one posting style that are queued on a thread, in order.
///
/// Iteration uses a sequence number instead of an index, so entries may be added and removed meanwhile. Removed
/// entries are returned, because their release may run arbitrary code, which must not find the list in the middle of a
/// change.
struct NotificationList {
  struct Entry {
    /// The position in the order of everything queued on the thread.
    let sequence: UInt64
    let notification: Notification
    let modes: [RunLoop.Mode]
    let outlet: Outlet
    /// The place where it was queued, because the observers that it is posted to are not known.
    let origin: Origin

    func mayBePosted(in mode: RunLoop.Mode, isCommon: Bool) -> Bool {
      modes.contains(mode) || (isCommon && modes.contains(.common))
    }
  }

  /// Criteria for entries, where nil matches any.
  struct Criterion {
    var outlet: Outlet?
    var sender: Sender?
    var name: Notification.Name?
  }

  /// Properties that distinguish most entries without dereferencing anything.
  private struct Key {
    let outlet: ObjectIdentifier
    let sender: Sender
    let nameHash: Int
  }

  private struct Slot {
    let sequence: UInt64
    let key: Key
    /// The entry, or nil if it was removed.
    var entry: Entry?
  }

  /// The number of times that entries name a mode.
  private struct Demand {
    let mode: RunLoop.Mode
    var count: Int
  }

  /// The slots in ascending order of their sequence numbers.
  private var slots: ContiguousArray<Slot> = []
  private(set) var count = 0
  private var demands: ContiguousArray<Demand> = []

  /// Whether an entry names a mode.
  ///
  /// - Complexity: O(*m*), where *m* is the number of modes that are named.
  func names(_ mode: RunLoop.Mode) -> Bool { demands.contains { $0.mode == mode } }

  /// Whether an entry waits for a mode, or for the common modes if it is one.
  ///
  /// - Complexity: O(*m*), where *m* is the number of modes that are named.
  func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
    names(mode) || (isCommon && names(.common))
  }

  /// Appends an entry, whose sequence number must be larger than all before it.
  ///
  /// - Complexity: Amortized O(1).
  mutating func append(_ entry: Entry) {
    let key = Key(
      outlet: ObjectIdentifier(entry.outlet), sender: Sender(entry.notification.object),
      nameHash: entry.notification.name.hashValue)
    slots.append(Slot(sequence: entry.sequence, key: key, entry: entry))
    count += 1
    for mode in entry.modes { count(mode, 1) }
  }

  /// Removes the first entry, in a range of sequence numbers, that may be posted in a mode.
  ///
  /// - Complexity: O(log *n*), plus the number of entries that are skipped.
  mutating func takeFirst(after: UInt64, through: UInt64, for mode: RunLoop.Mode, isCommon: Bool) -> Entry? {
    var index = firstIndex(after: after)
    while index < slots.endIndex, slots[index].sequence <= through {
      if slots[index].entry?.mayBePosted(in: mode, isCommon: isCommon) == true {
        let entry = take(index)
        compact()
        return entry
      }
      index += 1
    }
    return nil
  }

  /// Removes all entries that match.
  ///
  /// - Complexity: O(*n*).
  mutating func takeAll(_ criterion: Criterion) -> [Entry] {
    let outlet = criterion.outlet.map(ObjectIdentifier.init)
    let nameHash = criterion.name?.hashValue
    var taken: [Entry] = []
    for index in slots.indices {
      let key = slots[index].key
      guard outlet == nil || key.outlet == outlet, nameHash == nil || key.nameHash == nameHash,
        criterion.sender?.isSame(as: key.sender) ?? true, slots[index].entry != nil,
        criterion.name == nil || slots[index].entry?.notification.name == criterion.name
      else { continue }
      if let entry = take(index) { taken.append(entry) }
    }
    if !taken.isEmpty { compact() }
    return taken
  }

  private func firstIndex(after sequence: UInt64) -> Int {
    var range = slots.startIndex..<slots.endIndex
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      range = slots[middle].sequence > sequence ? range.lowerBound..<middle : middle + 1..<range.upperBound
    }
    return range.lowerBound
  }

  /// Empties a slot and returns its entry.
  private mutating func take(_ index: Int) -> Entry? {
    guard let entry = slots[index].entry.take() else { return nil }
    count -= 1
    for mode in entry.modes { count(mode, -1) }
    return entry
  }

  private mutating func count(_ mode: RunLoop.Mode, _ change: Int) {
    if let index = demands.firstIndex(where: { $0.mode == mode }) {
      demands[index].count += change
      if demands[index].count == 0 { demands.remove(at: index) }
    } else {
      demands.append(Demand(mode: mode, count: change))
    }
  }

  /// Removes the empty slots if they are the majority.
  private mutating func compact() {
    if count == 0 {
      slots.removeAll(keepingCapacity: slots.capacity <= 64)
    } else if slots.count > 32, slots.count > 2 * count {
      slots.removeAll { $0.entry == nil }
    }
  }
}
