// SPDX-License-Identifier: Apache-2.0

/// Generates random programs.
///
/// Most have a stopper: a repeating timer in every mode, which no action affects, and whose call-out stops the
/// innermost run. A program without one still ends, because a loop that would sleep forever is stopped, and a full
/// log ends the program.
package struct Generator: Sendable {
  var random: SplitMix64
  /// The items that actions can use.
  var shape = Shape()

  /// Creates the generator for one program of a series.
  package init(seed: UInt64, number: Int) {
    var seeds = SplitMix64(seed: seed)
    random = SplitMix64(seed: seeds.next() ^ (UInt64(number) &* 0xD1B5_4A32_D192_ED03))
  }

  /// The numbers of items, and the program's tendencies.
  struct Shape {
    var modes = 1
    var sources = 0
    var observers = 0
    /// The number of timers without the stopper.
    var timers = 0
    var blocks = 0
    /// The mode in which most actions take place.
    var home = 0
    /// Whether that mode may only become common during the program, and many items depend on it.
    var becomesCommon = false
    var hasStopper = true
    /// The probability in percent that a call-out has actions.
    var zeal = 50
    /// The maximum number of actions of a call-out.
    var length = 3
    /// The last date of a timer.
    var lastDate = 8
    /// The additional weight of kinds of actions.
    ///
    /// Programs without some kinds, and others with many of one kind, cover more cases than uniform ones.
    var emphasis: [ActionKind: Int] = [:]
  }

  private mutating func makeShape() -> Shape {
    let most = random.chance(25) ? 6 : 4
    var shape = Shape(
      modes: random.element(weighing: [(5, 1), (4, 2), (2, 3)]), sources: random.number(below: most),
      observers: random.element(weighing: [(1, 0), (5, 1), (3, 2), (1, most)]), timers: random.number(below: most),
      blocks: random.number(below: most), hasStopper: random.chance(80),
      zeal: random.element(weighing: [(2, 20), (5, 45), (2, 75)]), length: random.number(in: 1...5),
      lastDate: random.element(of: [2, 4, 8]))
    if random.chance(40) { shape.home = random.number(below: shape.modes) }
    for kind in ActionKind.allCases {
      shape.emphasis[kind] = random.element(weighing: [(2, 0), (5, 1), (2, 4)])
    }
    if shape.home > 0, random.chance(60) {
      shape.becomesCommon = true
      shape.blocks += 2
      for kind in [.addCommonMode, .perform] as [ActionKind] { shape.emphasis[kind] = 4 }
    }
    return shape
  }

  package mutating func program() -> Program {
    shape = makeShape()
    var program = Program()
    for _ in 0..<shape.sources {
      program.sources.append(SourcePlan(order: random.element(of: [0, 0, 0, 1, -1]), body: body()))
    }
    for _ in 0..<shape.observers { program.observers.append(observer()) }
    for _ in 0..<shape.timers { program.timers.append(timer()) }
    for _ in 0..<shape.blocks { program.blocks.append(body()) }
    if shape.becomesCommon {
      let block = random.number(below: shape.blocks)
      let calls = program.blocks[block].calls
      program.blocks[block].calls = [(calls.first ?? []) + [.addCommonMode(shape.home)]] + calls.dropFirst()
    }
    program.main = main()
    if shape.hasStopper {
      program.timers.append(
        TimerPlan(date: random.number(in: 2...9), interval: random.number(in: 2...6), body: Body(afterwards: [.stop])))
      program.main = (0..<shape.modes).map { .add(.timer(shape.timers), .mode($0)) } + program.main
    }
    program.whileAsleep = interruptions()
    // Only one source and one mode, because the order of several mode handlers is unspecified.
    if shape.sources > 0, shape.modes == 1, random.chance(30), !program.addsCommonMode {
      program.sources[random.number(below: shape.sources)].tellsModes = true
    }
    return program
  }

  private mutating func observer() -> ObserverPlan {
    ObserverPlan(
      activities: activities(), repeats: random.chance(85), order: random.element(of: [0, 0, 0, 1, -1]), body: body())
  }

  private mutating func activities() -> UInt {
    let all: [UInt] = [1, 2, 4, 32, 64, 128]
    switch random.number(below: 10) {
    case 0...3: return all.reduce(0, |)
    case 4...7: return random.element(of: all)
    default: return all.reduce(0) { $0 | (random.chance(50) ? $1 : 0) }
    }
  }

  private mutating func timer() -> TimerPlan {
    TimerPlan(date: date(), interval: random.element(of: [0, 0, 0, 0, 0, -1, 1, 1, 2, 2, 3, 3]), body: body())
  }

  /// Returns the actions of the loop's thread: it adds most items, and runs the loop a few times.
  private mutating func main() -> [Action] {
    var actions: [Action] = []
    for item in items() where random.chance(85) { actions.append(.add(item, mode(common: 30))) }
    for number in 1..<max(2, shape.modes) where random.chance(30) && !(shape.becomesCommon && number == shape.home) {
      actions.append(.addCommonMode(number))
    }
    if shape.becomesCommon {
      for _ in 0..<random.number(in: 0...4) {
        actions.append(.perform(random.number(below: shape.blocks), blockModes()))
      }
    }
    for _ in 0..<random.number(in: 1...3) {
      for _ in 0..<random.number(below: 4) { actions.append(action(in: .main)) }
      actions.append(run())
    }
    for _ in 0..<random.number(below: 3) { actions.append(.ask(question())) }
    return actions
  }

  private mutating func interruptions() -> [Interruption] {
    guard random.chance(50) else { return [] }
    var interruptions: [Interruption] = []
    for _ in 0..<random.number(in: 1...3) {
      interruptions.append(Interruption(at: random.number(in: 0...8), actions(1...shape.length, in: .elsewhere)))
    }
    return interruptions
  }

  private mutating func body() -> Body {
    var body = Body()
    for _ in 0..<random.number(below: 4) {
      body.calls.append(random.chance(shape.zeal) ? actions(1...shape.length, in: .callOut) : [])
    }
    // Repeated actions must end by themselves.
    if random.chance(shape.zeal / 4) {
      var actions: [Action] = [.ask(question()), .wakeUp, .work(1), .stop]
      if hasItem { actions.append(.remove(item(), mode(common: 20))) }
      body.afterwards = [random.element(of: actions)]
    }
    return body
  }
}

extension Program {
  /// Whether a mode other than the default one may become common.
  fileprivate var addsCommonMode: Bool {
    var adds = false
    forEachAction { if case .addCommonMode(1...) = $0 { adds = true } }
    return adds
  }
}
