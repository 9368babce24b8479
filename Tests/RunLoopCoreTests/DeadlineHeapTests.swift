// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The heap of deadlines")
struct DeadlineHeapTests {
  @Test("the heap agrees with a sorted array under random changes", arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    var model = SortedArray()
    var insertion: UInt64 = 0
    // Few members and ticks cause many ties; many cause deep heaps.
    let ticks = random.oneIn(2) ? 8 : 1_000_000
    let limit = random.oneIn(2) ? 12 : 300
    for _ in 0..<800 {
      let tick = Tick(nanoseconds: Int64(random.below(ticks)))
      insertion += 1
      switch random.below(10) {
      case 0..<4 where model.entries.count < limit:
        let member = Member(insertion)
        heap.insert(member, at: tick)
        model.insert(member, tick, insertion)
      case 4..<6 where !model.entries.isEmpty:
        let member = model.entries[random.below(model.entries.count)].member
        heap.remove(member, from: member.place)
        model.remove(member)
        #expect(member.place == -1)
      case 6..<9 where !model.entries.isEmpty:
        let member = model.entries[random.below(model.entries.count)].member
        member.turn = insertion
        heap.move(member, from: member.place, to: tick)
        model.remove(member)
        model.insert(member, tick, insertion)
      case 9:
        var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
        defer { release(&due) }
        heap.collect(dueAt: tick, into: &due)
        #expect(due.compactMap(\.member) == model.entries.prefix { $0.tick <= tick }.map(\.member))
      default: break
      }
      heap.checkInvariants { $0.place }
      #expect(heap.count == model.entries.count)
      #expect(heap.isEmpty == model.entries.isEmpty)
      #expect(heap.firstTick == model.entries.first?.tick ?? .never)
      #expect(heap.first == model.entries.first?.member)
      if random.oneIn(10) { #expect(heap.sorted == model.entries.map(\.member)) }
    }
    heap.removeAll()
    #expect(heap.count == 0)
    #expect(model.entries.allSatisfy { $0.member.place == -1 })
  }

  @Test(
    "collected members come by tick and insertion after the list's contents, and stay in the heap",
    .rule(.r94))
  func collect() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<20).map { Member(UInt64($0)) }
    for (index, member) in members.enumerated() { heap.insert(member, at: Tick(nanoseconds: Int64(20 - index / 2))) }
    var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
    defer { release(&due) }
    heap.collect(dueAt: Tick(nanoseconds: 10), into: &due)
    #expect(due.isEmpty)
    heap.collect(dueAt: Tick(nanoseconds: 12), into: &due)
    #expect(due.compactMap(\.member) == [members[18], members[19], members[16], members[17]])
    heap.collect(dueAt: Tick(nanoseconds: 11), into: &due)
    #expect(due.compactMap(\.member) == [18, 19, 16, 17, 18, 19].map { members[$0] })
    #expect(heap.count == 20)
    heap.removeAll()
  }

  @Test(
    "due members, few or many, come by tick and insertion", .rule(.r94), arguments: [2, 3000, 4096, 4097, 60_000],
    [1, 2, 100])
  func collectMany(count: Int, share: Int) {
    var random = SplitMix64(seed: 1)
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    // Several members have the same tick.
    let members = (0..<count).map { turn in
      (tick: Tick(nanoseconds: Int64(random.below(max(1, count / share)))), member: Member(UInt64(turn)))
    }
    for (tick, member) in members { heap.insert(member, at: tick) }
    var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
    defer { release(&due) }
    heap.collect(dueAt: Tick(nanoseconds: Int64(count)), into: &due)
    let expected = members.sorted { ($0.tick, $0.member.turn) < ($1.tick, $1.member.turn) }
    #expect(due.compactMap(\.member) == expected.map(\.member))
    heap.removeAll()
  }

  @Test("a member that gets another date and then its old one again comes after all others of that date")
  func laterAndBack() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (1...7).map { Member(UInt64($0)) }
    for member in members { heap.insert(member, at: Tick(nanoseconds: 5)) }
    func move(_ member: Member, to tick: Int64, turn: UInt64) {
      member.turn = turn
      heap.move(member, from: member.place, to: Tick(nanoseconds: tick))
      heap.checkInvariants { $0.place }
    }
    for (turn, member) in members[0..<3].enumerated() { move(member, to: 9, turn: UInt64(10 + turn)) }
    move(members[3], to: 1, turn: 13)
    #expect(heap.first == members[3])
    move(members[3], to: 5, turn: 14)
    move(members[1], to: 5, turn: 20)
    var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
    defer { release(&due) }
    heap.collect(dueAt: Tick(nanoseconds: 9), into: &due)
    #expect(due.compactMap(\.member) == [4, 5, 6, 3, 1, 0, 2].map { members[$0] })
    heap.removeAll()
  }

  @Test("a member that has moved up is moved and removed, although it was notified of a lower place")
  func movedUp() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<300).map { Member(UInt64($0)) }
    for (index, member) in members.enumerated() { heap.insert(member, at: Tick(nanoseconds: Int64(index))) }
    for member in members[..<250] { heap.remove(member, from: member.place) }
    heap.checkInvariants { $0.place }
    #expect(heap.sorted == Array(members[250...]))
    // Some were notified of places that no longer exist.
    #expect(members[250...].contains { $0.place >= heap.count })
    for (turn, member) in members[250..<275].enumerated() {
      member.turn = UInt64(300 + turn)
      heap.move(member, from: member.place, to: Tick(nanoseconds: Int64(turn.isMultiple(of: 2) ? turn : 300 + turn)))
      heap.checkInvariants { $0.place }
    }
    for index in 0..<50 {
      let member = members[250 + index * 7 % 50]
      heap.remove(member, from: member.place)
      heap.checkInvariants { $0.place }
      #expect(member.place == -1)
    }
    #expect(heap.count == 0)
  }

  @Test("a heap that grows keeps its members, and each is removed from wherever it is")
  func growth() {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<100).map { Member(UInt64($0 + 1)) }
    for turn in 0..<3 {
      for (index, member) in members.enumerated() {
        heap.insert(member, at: Tick(nanoseconds: Int64(index * 37 % 100)))
      }
      #expect(Set(members.map(\.place)) == Set(0..<100))
      for index in members.indices where index % 3 == turn { heap.remove(members[index], from: members[index].place) }
      heap.checkInvariants { $0.place }
      for member in members where member.place >= 0 { heap.remove(member, from: member.place) }
    }
    #expect(heap.count == 0)
  }

  @Test("the heap retains each member once, and releases it")
  func references() throws {
    var heap = DeadlineHeap<Member>(kind: .latest, owner: owner)
    let weak = {
      let member = Member(1)
      heap.insert(member, at: .never)
      return WeakBox(member)
    }()
    do {
      let member = try #require(weak.object)
      heap.remove(member, from: member.place)
    }
    #expect(weak.object == nil)
  }

  @Test("taking a member out transfers the heap's reference")
  func takenReference() throws {
    var heap = DeadlineHeap<Member>(kind: .due, owner: owner)
    let members = (0..<20).map { WeakBox(insertNew(Int64($0 * 7 % 20), in: &heap)) }
    for index in [5, 17, 0] {
      let taken = try {
        let member = try #require(members[index].object)
        return heap.take(member, from: member.place)
      }()
      heap.checkInvariants { $0.place }
      #expect(members[index].object?.place == -1)
      taken.release()
      #expect(members[index].object == nil)
    }
    #expect(heap.count == 17 && members.count { $0.object != nil } == 17)
  }

  /// Inserts a member that only the heap retains.
  private func insertNew(_ tick: Int64, in heap: inout DeadlineHeap<Member>) -> Member {
    let member = Member(UInt64(tick))
    heap.insert(member, at: Tick(nanoseconds: tick))
    return member
  }

  @Test("a heap that is released releases its members")
  func referencesAtEnd() {
    let weak = {
      var heap = DeadlineHeap<Member>(kind: .latest, owner: owner)
      let member = Member(1)
      heap.insert(member, at: .never)
      return WeakBox(member)
    }()
    #expect(weak.object == nil)
  }
}

func release<Member>(_ due: inout ContiguousArray<DeadlineHeap<Member>.Due>) {
  for index in due.indices { due[index].take()?.release() }
}

private final class Owner {}
private let owner = ObjectIdentifier(Owner.self)

private final class Member: DeadlineHeapMember, Hashable, @unchecked Sendable {
  // Sendable: used by one test on one thread.
  var turn: UInt64
  private(set) var place: Int32 = -1

  init(_ turn: UInt64) { self.turn = turn }

  func setPlace(_ place: Int32, in heap: ObjectIdentifier, kind: DeadlineHeapKind) {
    precondition(heap == owner, "another heap")
    self.place = place
  }

  func turn(in heap: ObjectIdentifier) -> UInt64 { turn }

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
