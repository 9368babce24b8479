import Testing

@testable import RunLoopCore

@Suite("The heap of deadlines")
struct DeadlineHeapTests {
  @Test("against a sorted array: random insertions, removals, moves and collections", arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var heap = DeadlineHeap<Member>(kind: .due)
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
        let member = Member(slot: Int32(random.below(3)))
        heap.insert(member, slot: member.slot, tick: tick, insertion: insertion)
        model.insert(member, tick, insertion)
      case 4..<6 where !model.entries.isEmpty:
        let member = model.entries[random.below(model.entries.count)].member
        heap.remove(at: member.place)
        model.remove(member)
        #expect(member.position == -1)
      case 6..<9 where !model.entries.isEmpty:
        let member = model.entries[random.below(model.entries.count)].member
        heap.move(at: member.place, to: tick, insertion: insertion)
        model.remove(member)
        model.insert(member, tick, insertion)
      case 9:
        var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
        heap.collect(dueAt: tick, into: &due)
        #expect(due.map(\.member) == model.entries.prefix { $0.tick <= tick }.map(\.member))
      default: break
      }
      heap.checkInvariants { member, slot in slot == member.slot ? member.position : -2 }
      #expect(heap.count == model.entries.count)
      #expect(heap.isEmpty == model.entries.isEmpty)
      #expect(heap.firstTick == model.entries.first?.tick ?? .never)
    }
    heap.removeAll()
    #expect(heap.isEmpty)
    #expect(model.entries.allSatisfy { $0.member.position == -1 })
  }

  // R94
  @Test("what is collected comes by tick and insertion, behind what the list holds already, and stays in the heap")
  func collect() {
    var heap = DeadlineHeap<Member>(kind: .due)
    let members = (0..<20).map { _ in Member(slot: 0) }
    for (index, member) in members.enumerated() {
      heap.insert(member, slot: 0, tick: Tick(nanoseconds: Int64(20 - index / 2)), insertion: UInt64(index))
    }
    var due: ContiguousArray<DeadlineHeap<Member>.Due> = []
    heap.collect(dueAt: Tick(nanoseconds: 10), into: &due)
    #expect(due.isEmpty)
    heap.collect(dueAt: Tick(nanoseconds: 12), into: &due)
    #expect(due.map(\.member) == [members[18], members[19], members[16], members[17]])
    heap.collect(dueAt: Tick(nanoseconds: 11), into: &due)
    #expect(due.map(\.member) == [18, 19, 16, 17, 18, 19].map { members[$0] })
    #expect(heap.count == 20)
    heap.removeAll()
  }

  @Test("the heap holds each member once and lets it go")
  func references() throws {
    var heap = DeadlineHeap<Member>(kind: .latest)
    let weak = {
      let member = Member(slot: 7)
      heap.insert(member, slot: 7, tick: .never, insertion: 1)
      return WeakBox(member)
    }()
    do {
      let member = try #require(weak.object)
      #expect(member.position == 0)
      heap.remove(at: 0)
    }
    #expect(weak.object == nil)
  }
}

private final class Member: DeadlineHeapMember, Hashable, @unchecked Sendable {
  // Sendable: of one test, which has one thread.
  let slot: Int32
  private(set) var position: Int32 = -1

  init(slot: Int32) { self.slot = slot }

  var place: Int { Int(position) }

  func setPosition(_ position: Int32, slot: Int32, kind: DeadlineHeapKind) {
    precondition(slot == self.slot, "the heap has another slot")
    self.position = position
  }

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
