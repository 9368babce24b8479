// SPDX-License-Identifier: Apache-2.0

protocol ObserverTableMember: Hashable {
  /// The priority; members with a smaller order come first.
  var order: Int { get }
}

extension RunLoop.Observer: ObserverTableMember {}

/// The observers of a mode, which are added and removed in constant time and sorted only when they are listed.
///
/// Observers are added and removed far more often than they are listed: the loop's thread lists them once after a
/// change, at the next activity.
struct ObserverTable<Member: ObserverTableMember> {
  /// A member and its position among the members of its order.
  struct Entry {
    let member: Member
    let insertion: UInt64
  }

  private var insertions: [Member: UInt64] = [:]
  private var lastInsertion: UInt64 = 0

  var isEmpty: Bool { insertions.isEmpty }
  var count: Int { insertions.count }

  /// Inserts a member after all members of its order.
  ///
  /// - Complexity: O(1)
  mutating func insert(_ member: Member) {
    lastInsertion += 1
    insertions[member] = lastInsertion
  }

  /// Removes a member if the table contains it.
  ///
  /// - Complexity: O(1)
  mutating func remove(_ member: Member) {
    insertions[member] = nil
  }

  /// The members in no particular order, for ``ordered(_:)``.
  ///
  /// This is a copy: a list that shared the table's storage would cause the next change to copy all of it.
  ///
  /// - Complexity: O(n)
  var entries: ContiguousArray<Entry> {
    var entries = ContiguousArray<Entry>()
    entries.reserveCapacity(insertions.count)
    for (member, insertion) in insertions { entries.append(Entry(member: member, insertion: insertion)) }
    return entries
  }

  /// Returns the members in ascending order; those of equal order are in insertion order.
  ///
  /// - Complexity: O(n log n)
  static func ordered(_ entries: ContiguousArray<Entry>) -> ContiguousArray<Member> {
    let sorted = entries.sorted { left, right in
      let (first, second) = (left.member.order, right.member.order)
      return first != second ? first < second : left.insertion < right.insertion
    }
    return ContiguousArray(sorted.lazy.map(\.member))
  }
}
