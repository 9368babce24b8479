// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The modes and places of a timer")
struct TimerSlotsTests {
  @Test("timer slots agree with a dictionary when random modes come and go", .rule(.r99b), arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    // A slot does not retain its mode, which lives as long as its loop, which the timer retains.
    let modes = (0..<8).map { ModeState(RunLoop.Mode("\($0)")) }
    var slots = TimerSlots()
    var model: [Int: (insertion: UInt64, due: Int32, latest: Int32)] = [:]
    for _ in 0..<500 {
      let index = random.below(modes.count)
      let mode = modes[index]
      switch (random.below(3), model[index]) {
      case (0, nil):
        let insertion = UInt64(random.below(100))
        slots.insert(mode, insertion: insertion)
        model[index] = (insertion, -1, -1)
      case (1, _?):
        slots.remove(mode)
        model[index] = nil
      case (2, _?):
        let place = Int32(random.below(100))
        switch random.below(3) {
        case 0:
          slots.setPlace(place, in: ObjectIdentifier(mode), kind: .due)
          model[index]?.due = place
        case 1:
          slots.setPlace(place, in: ObjectIdentifier(mode), kind: .latest)
          model[index]?.latest = place
        default:
          var turn: UInt64 = 1000
          var renewed: [Int: UInt64] = [:]
          func next() -> UInt64 {
            turn += 1
            return turn
          }
          slots.renew(turn: next) { mode, slot in
            #expect(slot.mode === mode)
            renewed[modes.firstIndex { $0 === mode } ?? -1] = slot.insertion
          }
          #expect(Set(renewed.values) == Set((0..<UInt64(model.count)).map { 1001 + $0 }))
          for (index, insertion) in renewed { model[index]?.insertion = insertion }
        }
      default: break
      }
      #expect(slots.isEmpty == model.isEmpty)
      #expect(Set(slots.modes.map(\.name)) == Set(model.keys.map { modes[$0].name }))
      #expect(Array(slots.modes).count == model.count)
      for (index, mode) in modes.enumerated() {
        #expect(slots[mode]?.insertion == model[index]?.insertion)
        guard let place = model[index] else { continue }
        #expect(slots[mode]?.mode === mode)
        #expect(slots[mode]?.duePlace == place.due)
        #expect(slots[mode]?.latestPlace == place.latest)
      }
    }
    slots.end()
    withExtendedLifetime(modes) {}
  }

  @Test("the first mode of a timer needs no separate memory, even after several modes")
  func inline() {
    let modes = (0..<3).map { ModeState(RunLoop.Mode("\($0)")) }
    var slots = TimerSlots()
    slots.insert(modes[0], insertion: 1)
    #expect(slots.rare == nil && slots.first.mode === modes[0])
    slots.insert(modes[1], insertion: 2)
    slots.insert(modes[2], insertion: 3)
    #expect(slots.rare?.others.count == 2)
    slots.remove(modes[0])
    slots.remove(modes[1])
    #expect(slots.rare?.others.isEmpty ?? false)
    #expect(slots.first.mode === modes[2] && slots.first.insertion == 3)
    slots.remove(modes[2])
    #expect(slots.isEmpty)
    slots.end()
    withExtendedLifetime(modes) {}
  }
}
