// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopConformance

@Suite("Random programs")
struct GeneratorTests {
  private func program(_ number: Int, seed: UInt64 = 1) -> Program {
    var generator = Generator(seed: seed, number: number)
    return generator.program()
  }

  @Test("a seed always generates the same numbers")
  func numbers() {
    // The first numbers for the seed 1234567 according to the authors' program.
    var random = SplitMix64(seed: 1_234_567)
    #expect(random.next() == 6_457_827_717_110_365_317)
    #expect(random.next() == 3_203_168_211_198_807_973)
    #expect(random.next() == 9_817_491_932_198_370_423)
  }

  @Test("numbers below a bound are uniform")
  func bounds() {
    var random = SplitMix64(seed: 9)
    var counts = [0, 0, 0, 0, 0, 0, 0]
    for _ in 0..<7000 { counts[random.number(below: 7)] += 1 }
    #expect(counts.allSatisfy { 800...1200 ~= $0 })
  }

  @Test("the same seed and number generate the same program, and others different ones")
  func same() {
    for number in 0..<50 { #expect(program(number) == program(number)) }
    #expect(Set((0..<200).map { program($0) }).count > 195)
    #expect(program(3) != program(3, seed: 2))
  }

  @Test("every program can be run")
  func faultless() {
    for number in 0..<2000 { #expect(program(number).faults == []) }
  }

  @Test("a program has a stopper in each of its modes that nothing touches, or is one of the few without")
  func stoppers() {
    var without = 0
    for number in 0..<500 {
      let program = program(number)
      guard let stopper = program.timers.lastIndex(where: { $0.body == Body(afterwards: [.stop]) && $0.interval > 1 }),
        program.main.contains(.add(.timer(stopper), .mode(0)))
      else {
        without += 1
        continue
      }
      program.forEachAction { action in
        switch action {
        case .remove(.timer(stopper), _), .invalidate(.timer(stopper)), .setDate(stopper, _):
          Issue.record("\(action) in program \(number)")
        default: break
        }
      }
    }
    #expect(50...200 ~= without)
  }

  @Test("every kind of action occurs, in main, in call-outs and on another thread")
  func kinds() {
    var names: Set<String> = []
    for number in 0..<500 {
      let program = program(number)
      program.forEachAction { names.insert(name($0.literal)) }
      for action in program.main { names.insert("main " + name(action.literal)) }
      for action in program.whileAsleep.flatMap(\.actions) { names.insert("asleep " + name(action.literal)) }
    }
    let everywhere = [
      ".add", ".remove", ".invalidate", ".signal", ".perform", ".addCommonMode", ".setDate", ".stop", ".stopMode",
      ".wakeUp", ".work", ".ask",
    ]
    let expected = everywhere.flatMap { [$0, "main " + $0, "asleep " + $0] }
    let ofTheLoopsThread = [".run", ".runUntilStopped", ".elsewhere"].flatMap { [$0, "main " + $0] }
    #expect(names == Set(expected + ofTheLoopsThread))
  }

  private func name(_ literal: Literal) -> String {
    guard case .call(let name, _) = literal else { return "" }
    return name
  }
}
