// SPDX-License-Identifier: Apache-2.0

/// A member of an ``ObserverTable``.
protocol ObserverTableMember: Hashable {
  /// Members with a smaller order come first.
  var order: Int { get }
}

extension RunLoop.Observer: ObserverTableMember {}

/// The observers of a mode, which are added and removed in constant time, and are put in order when they are listed.
///
/// Observers are added and removed far more often than lists are made: the loop's thread lists them once after a
/// change, when it reaches a stage.
struct ObserverTable<Member: ObserverTableMember> {
  /// A member and its turn among those of its order.
  struct Entry {
    let member: Member
    let insertion: UInt64
  }

  private var insertions: [Member: UInt64] = [:]
  private var lastInsertion: UInt64 = 0

  var isEmpty: Bool { insertions.isEmpty }
  var count: Int { insertions.count }

  /// Inserts a member behind all members of its order.
  ///
  /// - Complexity: O(1).
  mutating func insert(_ member: Member) {
    lastInsertion += 1
    insertions[member] = lastInsertion
  }

  /// Removes a member, if it is here.
  ///
  /// - Complexity: O(1).
  mutating func remove(_ member: Member) {
    insertions[member] = nil
  }

  /// The members in no order, for ``ordered(_:)``.
  ///
  /// This is a copy: a list that shared the table's storage would make the next change copy all of it.
  ///
  /// - Complexity: O(n).
  var entries: ContiguousArray<Entry> {
    var entries = ContiguousArray<Entry>()
    entries.reserveCapacity(insertions.count)
    for (member, insertion) in insertions { entries.append(Entry(member: member, insertion: insertion)) }
    return entries
  }

  /// Members by ascending order and, among equals, as they were inserted.
  ///
  /// - Complexity: O(n log n).
  static func ordered(_ entries: ContiguousArray<Entry>) -> ContiguousArray<Member> {
    let sorted = entries.sorted { left, right in
      let (first, second) = (left.member.order, right.member.order)
      return first != second ? first < second : left.insertion < right.insertion
    }
    return ContiguousArray(sorted.lazy.map(\.member))
  }
}
