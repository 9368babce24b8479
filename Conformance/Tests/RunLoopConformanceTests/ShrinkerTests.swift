// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Testing

@testable import RunLoopConformance

@Suite("Shrinking failing programs")
struct ShrinkerTests {
  private func program(_ number: Int) -> Program {
    var generator = Generator(seed: 21, number: number)
    return generator.program()
  }

  /// Whether a program contains a certain kind of action.
  private func has(_ program: Program, _ isRight: (Action) -> Bool) -> Bool {
    var found = false
    program.forEachAction { if isRight($0) { found = true } }
    return found
  }

  @Test("of a program that fails for one action, nothing but that and its place is left, with the smallest numbers")
  func oneAction() {
    var shrunk = 0
    for number in 0..<40 {
      let program = program(number)
      func fails(_ program: Program) -> Bool {
        has(program) { if case .stopMode = $0 { true } else { false } }
      }
      guard fails(program) else { continue }
      shrunk += 1
      var shrinker = Shrinker()
      let smallest = shrinker.smallest(program, where: fails)
      let once = Body([[.stopMode(0)]])
      #expect(
        [
          Program(main: [.stopMode(0)]), Program(whileAsleep: [Interruption(at: 0, [.stopMode(0)])]),
          Program(sources: [SourcePlan(body: once)]), Program(timers: [TimerPlan(date: 0, body: once)]),
          Program(observers: [ObserverPlan(activities: 0, body: once)]), Program(blocks: [once]),
        ].contains(smallest), "\(smallest)")
    }
    #expect(shrunk > 5)
  }

  @Test("an item that is needed moves to the front, and what was done to others goes with them")
  func renumbering() {
    let program = Program(
      sources: [SourcePlan(), SourcePlan(order: 1), SourcePlan()], timers: [TimerPlan(date: 3, interval: 2)],
      blocks: [Body(), Body([[.signal(2), .signal(0)]])],
      main: [
        .add(.source(2), .common), .perform(0, [.mode(0)]), .perform(1, [.mode(0)]), .setDate(0, 4), .signal(2),
        .elsewhere([.ask(.isSignalled(2))]), .ask(.contains(.source(2), .mode(1))), .invalidate(.source(1)),
      ])
    func fails(_ program: Program) -> Bool {
      has(program) { if case .ask(.isSignalled) = $0 { true } else { false } }
        && has(program) { if case .perform = $0 { true } else { false } }
        && has(program) { if case .signal = $0 { true } else { false } }
    }
    var shrinker = Shrinker()
    #expect(
      shrinker.smallest(program, where: fails)
        == Program(
          sources: [SourcePlan()], blocks: [Body()], main: [.perform(0, []), .signal(0), .ask(.isSignalled(0))]))
  }

  @Test("every step of shrinking results in a valid program")
  func valid() {
    var shrinker = Shrinker(limit: 50)
    _ = shrinker.smallest(program(1)) { program in
      #expect(program.faults == [])
      return false
    }
    #expect(shrinker.tries == 50)
  }

  @Test("the limit of tries ends the shrinking")
  func limit() {
    var shrinker = Shrinker(limit: 3)
    _ = shrinker.smallest(program(2)) { _ in true }
    #expect(shrinker.tries == 3)
  }
}
