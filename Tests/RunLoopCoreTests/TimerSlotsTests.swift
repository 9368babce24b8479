import Testing

@testable import RunLoopCore

@Suite("The places of a timer")
struct TimerSlotsTests {
  // R99b
  @Test("against a dictionary: random modes come and go, and a slot keeps its number", arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let modes = (0..<8).map { ModeState(RunLoop.Mode("\($0)")) }
    var slots = TimerSlots()
    var model: [Int: (slot: Int32, due: Int32, latest: Int32)] = [:]
    for _ in 0..<500 {
      let index = random.below(modes.count)
      let mode = modes[index]
      switch (random.below(3), model[index]) {
      case (0, nil):
        let slot = slots.insert(mode)
        #expect(!model.values.contains { $0.slot == slot })
        model[index] = (slot, -1, -1)
      case (1, let place?):
        slots.remove(place.slot)
        model[index] = nil
      case (2, let place?):
        let position = Int32(random.below(100))
        if random.oneIn(2) {
          slots.setPosition(position, slot: place.slot, kind: .due)
          model[index]?.due = position
        } else {
          slots.setPosition(position, slot: place.slot, kind: .latest)
          model[index]?.latest = position
        }
      default: break
      }
      #expect(slots.count == model.count)
      #expect(slots.isEmpty == model.isEmpty)
      #expect(Set(slots.modes.map(\.name)) == Set(model.keys.map { modes[$0].name }))
      #expect(Array(slots.modes).count == model.count)
      for (index, mode) in modes.enumerated() {
        #expect(slots.index(of: mode) == model[index]?.slot)
        guard let place = model[index] else { continue }
        #expect(place.slot < slots.end)
        #expect(slots[place.slot].mode === mode)
        #expect(slots[place.slot].position(.due) == place.due)
        #expect(slots[place.slot].position(.latest) == place.latest)
      }
    }
  }

  @Test("the first mode needs no memory of its own, and the last to go leaves none")
  func inline() {
    let modes = (0..<3).map { ModeState(RunLoop.Mode("\($0)")) }
    var slots = TimerSlots()
    #expect(slots.insert(modes[0]) == 0)
    #expect(slots.end == 1)
    #expect(slots.insert(modes[1]) == 1)
    #expect(slots.insert(modes[2]) == 2)
    slots.remove(1)
    #expect(slots.insert(modes[1]) == 1)
    for slot in [0, 2, 1] as [Int32] { slots.remove(slot) }
    #expect(slots.isEmpty)
    #expect(slots.insert(modes[2]) == 0)
    slots.remove(0)
    #expect(slots.end == 1)
  }
}
