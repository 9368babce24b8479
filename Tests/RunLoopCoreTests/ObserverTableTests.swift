// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The observers of a mode", .timeLimit(.minutes(20)))
struct ObserverTableTests {
  /// A member that counts how often the table inspects one.
  private struct Member: ObserverTableMember {
    let number: Int
    let order: Int
    let looks: Counter

    static func == (left: Member, right: Member) -> Bool {
      left.looks.add()
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) {
      looks.add()
      hasher.combine(number)
    }
  }

  @Test(
    "observers are listed by order, equal orders as they were added, also after leaving and returning",
    .rule(.r83))
  func order() {
    var table = ObserverTable<Member>()
    let looks = Counter()
    let members = [0, 2, 0, -1, 2, 0].enumerated().map { Member(number: $0, order: $1, looks: looks) }
    func numbers() -> [Int] { ObserverTable.ordered(table.entries).map(\.number) }
    for member in members { table.insert(member) }
    #expect(numbers() == [3, 0, 2, 5, 1, 4])
    table.remove(members[0])
    table.remove(members[4])
    #expect(numbers() == [3, 2, 5, 1])
    table.remove(members[0])
    table.insert(members[0])
    #expect(numbers() == [3, 2, 5, 0, 1])
    for member in members { table.remove(member) }
    #expect(table.isEmpty)
  }

  @Test(
    "inserting and removing an observer looks at a number of others that does not grow with their number", .rule(.r83),
    arguments: [1000, 20_000])
  func cost(count: Int) {
    var table = ObserverTable<Member>()
    let looks = Counter()
    let members = (0..<count).map { Member(number: $0, order: $0 % 7, looks: looks) }
    for member in members { table.insert(member) }
    // Two per member, and as many again each time the storage grows.
    #expect(looks.value < 12 * count)
    let inserted = looks.value
    // From the middle, the front and the end in turn.
    for index in 0..<count { table.remove(members[(index * 7919) % count]) }
    #expect(table.isEmpty)
    #expect(looks.value - inserted < 12 * count)
  }

  @Test(
    "a stage calls the observers that were in the mode when it began, and the next stage calls the others", .rule(.r85))
  func snapshot() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let second = RunLoop.Observer(activities: .entry, order: 2) { _, _ in log.write("2") }
      let third = RunLoop.Observer(activities: [.entry, .exit], order: 0) { _, _ in log.write("0") }
      loop.add(second, forMode: .default)
      loop.add(
        RunLoop.Observer(activities: .entry, order: 1) { _, _ in
          log.write("1")
          loop.remove(second, forMode: .default)
          loop.add(third, forMode: .default)
        }, forMode: .default)
      loop.run(log, for: .zero)
      loop.run(log, for: .zero)
    }
    #expect(log == "1 2 0 timedOut 0 1 0 timedOut")
  }
}
