// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The heap of deadlines")
struct DeadlineHeapTests {
  @Test("against a sorted array: random insertions, removals, moves to and fro, and collections", arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    var model = SortedArray()
    var insertion: UInt64 = 0
    // Few members and few ticks make many equals; many make deep heaps.
    let ticks = random.oneIn(2) ? 8 : 1_000_000
    let limit = random.oneIn(2) ? 12 : 300
    for _ in 0..<800 {
      let tick = Tick(nanoseconds: Int64(random.below(ticks)))
      insertion += 1
      switch random.below(10) {
      case 0..<4 where model.entries.count < limit:
        let member = Member(tick, insertion)
        heap.insert(member)
        model.insert(member, tick, insertion)
      case 4..<6 where !model.entries.isEmpty:
        let member = model.entries[random.below(model.entries.count)].member
        heap.remove(member.place)
        model.remove(member)
        #expect(member.place == -1)
      case 6..<9 where !model.entries.isEmpty:
        let member = model.entries[random.below(model.entries.count)].member
        member.key = DeadlineKey(tick: tick, insertion: insertion)
        heap.move(member.place)
        model.remove(member)
        model.insert(member, tick, insertion)
      case 9:
        var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
        heap.collect(dueAt: tick, into: &due)
        #expect(due.compactMap(\.member) == model.entries.prefix { $0.tick <= tick }.map(\.member))
      default: break
      }
      heap.checkInvariants { $0.place }
      #expect(heap.count == model.entries.count)
      #expect(heap.isEmpty == model.entries.isEmpty)
      // Not each time: what has become later is to be met below the top too.
      if random.oneIn(3) {
        #expect(heap.firstTick == model.entries.first?.tick ?? .never)
        #expect(heap.first?.takeUnretainedValue() == model.entries.first?.member)
      }
      if random.oneIn(10) { #expect(heap.sorted == model.entries.map(\.member)) }
    }
    heap.removeAll()
    #expect(heap.count == 0)
    #expect(model.entries.allSatisfy { $0.member.place == -1 })
  }

  // R94
  @Test("what is collected comes by tick and insertion, behind what the list holds already, and stays in the heap")
  func collect() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<20).map { Member(Tick(nanoseconds: Int64(20 - $0 / 2)), UInt64($0)) }
    for member in members { heap.insert(member) }
    var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
    heap.collect(dueAt: Tick(nanoseconds: 10), into: &due)
    #expect(due.isEmpty)
    heap.collect(dueAt: Tick(nanoseconds: 12), into: &due)
    #expect(due.compactMap(\.member) == [members[18], members[19], members[16], members[17]])
    heap.collect(dueAt: Tick(nanoseconds: 11), into: &due)
    #expect(due.compactMap(\.member) == [18, 19, 16, 17, 18, 19].map { members[$0] })
    #expect(heap.count == 20)
    heap.removeAll()
  }

  @Test("what has become later stays where it is until it comes to the top")
  func later() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<3).map { Member(Tick(nanoseconds: Int64($0)), UInt64($0)) }
    for member in members { heap.insert(member) }
    members[0].key = DeadlineKey(tick: Tick(nanoseconds: 2), insertion: 3)
    heap.move(members[0].place)
    #expect(heap.position(of: members[0].place) == 0)
    #expect(heap.firstTick == Tick(nanoseconds: 1))
    #expect(heap.position(of: members[0].place) > 0)
    // Equal dates: by turn, also by one that was given later.
    heap.remove(members[1].place)
    #expect(heap.first?.takeUnretainedValue() == members[2])
    heap.removeAll()
  }

  @Test("what has become later and then has its old date again stands behind all of that date")
  func laterAndBack() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (1...7).map { Member(Tick(nanoseconds: 5), UInt64($0)) }
    for member in members { heap.insert(member) }
    for (turn, member) in members[0..<3].enumerated() {
      member.key = DeadlineKey(tick: Tick(nanoseconds: 9), insertion: UInt64(10 + turn))
      heap.move(member.place)
      heap.checkInvariants { $0.place }
    }
    members[1].key = DeadlineKey(tick: Tick(nanoseconds: 5), insertion: 20)
    heap.move(members[1].place)
    heap.checkInvariants { $0.place }
    var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
    heap.collect(dueAt: Tick(nanoseconds: 9), into: &due)
    #expect(due.compactMap(\.member) == [3, 4, 5, 6, 1, 0, 2].map { members[$0] })
    heap.removeAll()
  }

  @Test("places are given again, and growth keeps what is there")
  func places() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<100).map { Member(Tick(nanoseconds: Int64($0 * 37 % 100)), UInt64($0 + 1)) }
    for turn in 0..<3 {
      for member in members { heap.insert(member) }
      #expect(Set(members.map(\.place)) == Set(0..<100))
      for member in members where member.key.tick.nanoseconds % 3 == turn { heap.remove(member.place) }
      heap.checkInvariants { $0.place }
      for member in members where member.place >= 0 { heap.remove(member.place) }
    }
    #expect(heap.count == 0)
  }

  @Test("the heap holds each member once and lets it go")
  func references() throws {
    var heap = DeadlineHeap<Member>(kind: .latest, owner: owner)
    let weak = {
      let member = Member(.never, 1)
      heap.insert(member)
      return WeakBox(member)
    }()
    do {
      let member = try #require(weak.object)
      heap.remove(member.place)
    }
    #expect(weak.object == nil)
  }

  @Test("a heap that goes lets its members go")
  func referencesAtEnd() {
    let weak = {
      var heap = DeadlineHeap<Member>(kind: .latest, owner: owner)
      let member = Member(.never, 1)
      heap.insert(member)
      return WeakBox(member)
    }()
    #expect(weak.object == nil)
  }
}

private final class Owner {}
private let owner = ObjectIdentifier(Owner.self)

private final class Member: DeadlineHeapMember, Hashable, @unchecked Sendable {
  // Sendable: of one test, which has one thread.
  var key: DeadlineKey
  private(set) var place: Int32 = -1

  init(_ tick: Tick, _ insertion: UInt64) { key = DeadlineKey(tick: tick, insertion: insertion) }

  func setPlace(_ place: Int32, in heap: ObjectIdentifier, kind: DeadlineHeapKind) {
    precondition(heap == owner, "another heap")
    self.place = place
  }

  func key(in heap: ObjectIdentifier, kind: DeadlineHeapKind) -> DeadlineKey { key }

  static func == (left: Member, right: Member) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

private struct SortedArray {
  private(set) var entries: [(tick: Tick, insertion: UInt64, member: Member)] = []

  mutating func insert(_ member: Member, _ tick: Tick, _ insertion: UInt64) {
    let index = entries.firstIndex { ($0.tick, $0.insertion) > (tick, insertion) } ?? entries.endIndex
    entries.insert((tick, insertion, member), at: index)
  }

  mutating func remove(_ member: Member) { entries.removeAll { $0.member === member } }
}
