// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The table of modes", .timeLimit(.minutes(20)))
struct ModeTableTests {
  @Test(
    "against plain lists: items come, go and are invalidated, modes become common",
    .rule(.r21, .r22, .r23, .r83, .r101, .r102, .r103, .r104, .r105, .m9), arguments: 1...8)
  func model(seed: UInt64) {
    onVirtualTime { _, loop in
      var random = SplitMix64(seed: seed)
      var items = (0..<14).map { AnyItem($0) }
      var plain = PlainTable()
      let modes: [RunLoop.Mode] = [.default, "A", "B", "C", "D"]
      for step in 0..<500 {
        let index = random.below(items.count)
        let mode = random.oneIn(4) ? .common : modes[random.below(modes.count)]
        switch random.below(20) {
        case 0..<10:
          #expect(items[index].add(to: loop, mode) == plain.add(index, to: mode))
        case 10..<17:
          items[index].remove(from: loop, mode)
          plain.remove(index, from: mode)
        case 17:
          items[index].invalidate()
          plain.invalidate(index)
        case 18:
          // Replaces an item that was invalidated.
          guard plain.ended.contains(index) else { break }
          items[index] = AnyItem(index)
          plain.ended.remove(index)
        default:
          if mode != .common, step > 100 {
            try? loop.addCommonMode(mode)
            plain.makeCommon(mode)
          }
        }
        plain.compare(with: loop, items)
      }
    }
  }

  @Test(
    "while one thread makes items common and one modes, every item enters every mode once", .rule(.r101, .r102, .r120))
  func racingCommonModes() {
    let items = (0..<200).map { AnyItem($0) }
    let modes = (0..<100).map { RunLoop.Mode("mode \($0)") }
    onVirtualTime { _, loop in
      let adder = startThread { for item in items { item.add(to: loop, .common) } }
      let maker = startThread { for mode in modes { try? loop.addCommonMode(mode) } }
      adder.result()
      maker.result()
      var plain = PlainTable()
      for mode in modes { plain.makeCommon(mode) }
      for index in items.indices { _ = plain.add(index, to: .common) }
      plain.compare(with: loop, items, inOrder: false)
    }
  }

  @Test(
    "of two threads' random changes each finds its own items where it has put them",
    .rule(.r99b, .r104, .r105, .r120, .m8), arguments: 1...3)
  func twoThreads(seed: UInt64) {
    let modes: [RunLoop.Mode] = [.default, "A", "B"]
    onVirtualTime { _, loop in
      try? loop.addCommonMode("A")
      let threads = (0..<2).map { thread in
        startThread {
          var random = SplitMix64(seed: seed * 2 + UInt64(thread))
          var plain = PlainTable()
          plain.makeCommon("A")
          let items = (0..<16).map { AnyItem($0) }
          for _ in 0..<1500 {
            let index = random.below(items.count)
            let mode = random.oneIn(3) ? .common : modes[random.below(modes.count)]
            switch (random.below(100), items[index]) {
            case (0, _):
              items[index].invalidate()
              plain.invalidate(index)
            case (1..<20, .timer(let timer)): timer.deadline = SuspendingClock.Instant.now + .seconds(random.below(9))
            case (20..<30, .timer(let timer)): timer.tolerance = Double(random.below(3))
            case (..<65, _):
              items[index].add(to: loop, mode)
              _ = plain.add(index, to: mode)
            default:
              items[index].remove(from: loop, mode)
              plain.remove(index, from: mode)
            }
          }
          plain.expectPlaces(of: items, in: loop, modes + [.common])
          for item in items { item.invalidate() }
        }
      }
      for thread in threads { thread.result() }
      // Invalidated items are in no mode.
      var empty = PlainTable()
      empty.makeCommon("A")
      empty.made = Set(modes)
      empty.compare(with: loop, [])
    }
  }
}

/// A model of the table, with numbers as items.
private struct PlainTable {
  var made: Set<RunLoop.Mode> = [.default]
  private var common: [RunLoop.Mode] = [.default]
  private var commonItems: [Int] = []
  /// In the order in which they were added.
  private var places: [RunLoop.Mode: [Int]] = [:]
  var ended: Set<Int> = []

  mutating func add(_ item: Int, to mode: RunLoop.Mode) -> Bool {
    guard !ended.contains(item) else { return false }
    guard mode == .common else {
      enter(item, mode)
      return true
    }
    if !commonItems.contains(item) { commonItems.append(item) }
    for mode in common { enter(item, mode) }
    return true
  }

  private mutating func enter(_ item: Int, _ mode: RunLoop.Mode) {
    made.insert(mode)
    if places[mode]?.contains(item) != true { places[mode, default: []].append(item) }
  }

  mutating func remove(_ item: Int, from mode: RunLoop.Mode) {
    guard mode == .common else {
      places[mode]?.removeAll { $0 == item }
      return
    }
    guard let index = commonItems.firstIndex(of: item) else { return }
    commonItems.remove(at: index)
    for mode in common { places[mode]?.removeAll { $0 == item } }
  }

  mutating func invalidate(_ item: Int) {
    ended.insert(item)
    commonItems.removeAll { $0 == item }
    for mode in places.keys { places[mode]?.removeAll { $0 == item } }
  }

  mutating func makeCommon(_ mode: RunLoop.Mode) {
    guard !common.contains(mode) else { return }
    common.append(mode)
    for item in commonItems { enter(item, mode) }
  }

  func compare(with loop: RunLoop, _ items: [AnyItem], inOrder: Bool = true) {
    #expect(loop.modes == made)
    loop.table.withLock { table in
      #expect(table.commonNames == common)
      expect(table.orderedCommonItems, commonItems.map { items[$0] }, inOrder: inOrder)
      for mode in table.modes.values {
        let here = (places[mode.name] ?? []).map { items[$0] }
        #expect(mode.isCommon.load(ordering: .relaxed) == common.contains(mode.name))
        #expect(mode.itemCount.load(ordering: .relaxed) == here.count { $0.counts })
        let observers = here.compactMap { item in
          if case .observer(let observer) = item { observer } else { nil }
        }
        // A stable sort keeps equal orders in the order in which they were added.
        let ordered = observers.enumerated()
          .sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }
          .map { AnyItem.observer($0.element) }
        expect(Array(mode.observers), ordered, inOrder: inOrder)
        expect(mode.sources.values.map(\.item), here.filter { if case .source = $0 { true } else { false } })
        expect(mode.ports.values.map(\.item), here.filter { if case .port = $0 { true } else { false } })
        let timers = here.filter { if case .timer = $0 { true } else { false } }
        expect(mode.timers.all, timers)
        #expect(mode.timerCount == timers.count)
        mode.timers.checkInvariants()
      }
    }
    expectPlaces(of: items, in: loop, Array(made) + [.common])
  }

  func expectPlaces(of items: [AnyItem], in loop: RunLoop, _ modes: [RunLoop.Mode]) {
    for (index, item) in items.enumerated() {
      for mode in modes {
        let isHere = mode == .common ? countsAsCommon(index, item) : places[mode]?.contains(index) == true
        #expect(item.isIn(loop, mode) == isHere, "item \(index) in \(mode)")
      }
    }
  }

  /// A timer or observer in no mode does not count as a common item, although it may become one again.
  private func countsAsCommon(_ index: Int, _ item: AnyItem) -> Bool {
    guard commonItems.contains(index) else { return false }
    switch item {
    case .timer, .observer: return places.values.contains { $0.contains(index) }
    case .source, .port: return true
    }
  }

  private func expect(_ found: [any ModeItem], _ expected: [AnyItem], inOrder: Bool = false) {
    let found = found.map { ObjectIdentifier($0) }
    let expected = expected.map { ObjectIdentifier($0.object) }
    #expect(found.count == expected.count)
    if inOrder { #expect(found == expected) } else { #expect(Set(found) == Set(expected)) }
  }
}
