// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopConformance

@Suite("Programs and logs as text")
struct TextTests {
  /// A program with one of everything.
  private let everything = Program(
    sources: [SourcePlan(tellsModes: true), SourcePlan(order: -1, body: Body([[.stop], []], afterwards: [.wakeUp]))],
    observers: [ObserverPlan(activities: 231, repeats: false, order: 2, body: Body([[.work(1)]]))],
    timers: [TimerPlan(date: -2), TimerPlan(date: 3, interval: 1, body: Body(afterwards: [.stopMode(1)]))],
    blocks: [Body(), Body([[.signal(1), .perform(0, []), .perform(1, [.common, .mode(2)])]])],
    main: [
      .add(.source(0), .mode(0)), .remove(.observer(0), .common), .invalidate(.timer(1)), .addCommonMode(1),
      .setDate(0, -3), .run(.mode(0), .forever, returnAfterSource: true),
      .run(.common, .poll, returnAfterSource: false), .ask(.contains(.timer(0), .common)),
      .ask(.isValid(.source(1))), .ask(.isSignalled(1)), .ask(.date(0)), .ask(.nextDate(.mode(1))), .ask(.modes),
      .elsewhere([.stop, .elsewhere([])]), .run(.mode(0), .overdue, returnAfterSource: false),
      .run(.mode(0), .notANumber, returnAfterSource: false), .runUntilStopped,
    ],
    whileAsleep: [Interruption(at: 4, [.wakeUp])])

  @Test("a program's text is the Swift expression that makes it")
  func source() {
    // Exactly the source above.
    let text = """
      Program(
        sources: [SourcePlan(tellsModes: true), SourcePlan(order: -1, body: Body([[.stop], []], afterwards: [.wakeUp]))],
        observers: [ObserverPlan(activities: 231, repeats: false, order: 2, body: Body([[.work(1)]]))],
        timers: [TimerPlan(date: -2), TimerPlan(date: 3, interval: 1, body: Body(afterwards: [.stopMode(1)]))],
        blocks: [Body(), Body([[.signal(1), .perform(0, []), .perform(1, [.common, .mode(2)])]])],
        main: [
          .add(.source(0), .mode(0)), .remove(.observer(0), .common), .invalidate(.timer(1)), .addCommonMode(1),
          .setDate(0, -3), .run(.mode(0), .forever, returnAfterSource: true),
          .run(.common, .poll, returnAfterSource: false), .ask(.contains(.timer(0), .common)),
          .ask(.isValid(.source(1))), .ask(.isSignalled(1)), .ask(.date(0)), .ask(.nextDate(.mode(1))), .ask(.modes),
          .elsewhere([.stop, .elsewhere([])]), .run(.mode(0), .overdue, returnAfterSource: false),
          .run(.mode(0), .notANumber, returnAfterSource: false), .runUntilStopped,
        ],
        whileAsleep: [Interruption(at: 4, [.wakeUp])])
      """
    #expect(everything.source(width: 116) == text)
    #expect(everything.faults == [])
  }

  @Test("a printed program can be parsed, at any width")
  func roundTrip() throws {
    #expect(try Program(source: everything.description) == everything)
    for number in 0..<300 {
      var generator = Generator(seed: 5, number: number)
      let program = generator.program()
      for width in [20, 80, 10_000] {
        #expect(try Program(source: program.source(width: width)) == program)
      }
    }
  }

  @Test("lines are as long as allowed, except for unbreakable parts")
  func width() {
    for number in 0..<100 {
      var generator = Generator(seed: 6, number: number)
      let lines = generator.program().source(width: 100, indentation: 4, used: 18).split(separator: "\n")
      #expect(lines.allSatisfy { $0.count <= 100 })
    }
  }

  @Test(
    "a text that is not a program is rejected with the reason",
    arguments: [
      ("", "the end instead of a value"),
      ("Program(main: [.stop]", "the end instead of a comma or )"),
      ("Program(main: [.stop)", ") instead of a comma or ]"),
      ("Program() Program()", "Program() instead of the end"),
      ("Program(main: [.halt])", ".halt instead of an action"),
      ("Program(main: [.work(true)])", "true instead of a number"),
      ("Program(main: [.work(1, 2)])", ".work with 2"),
      ("Program(main: [.work()])", ".work without its value"),
      ("Program(modes: [])", "Program with modes"),
      ("Program(timers: [TimerPlan()])", "TimerPlan without date"),
      ("Program(observers: [ObserverPlan(activities: -1)])", "-1 instead of bits of activities"),
      ("Program(main: [.work(99999999999999999999)])", ")]) instead of a number"),
    ])
  func rejections(_ text: String, _ reason: String) {
    #expect(throws: LiteralError(reason)) { try Program(source: text) }
  }

  @Test("numbers without an item are faults")
  func faults() {
    let program = Program(
      timers: [TimerPlan(date: 0, interval: -1)],
      main: [.signal(0), .elsewhere([.work(-1), .add(.timer(1), .mode(-1))]), .perform(0, [.common])],
      whileAsleep: [Interruption(at: -1, [])])
    #expect(
      program.faults == [
        "an interruption comes at tick -1", "there is no S0", "work takes -1 ticks", "there is no T1",
        "there is no mode -1", "there is no block 0",
      ])
  }

  @Test("a log says when, how deep and in which mode its entries are, where that changes")
  func log() {
    let inRun = Log.State(tick: 0, depth: 1, mode: .mode(0), isWaiting: false)
    let asleep = Log.State(tick: 3, depth: 1, mode: .mode(0), isWaiting: true)
    let after = Log.State(tick: 3, depth: 0, mode: nil, isWaiting: false)
    let log = Log([
      Log.Entry(.observer(0, 1), inRun), Log.Entry(.observer(2, 64), inRun), Log.Entry(.source(1), inRun),
      Log.Entry(.answer(.modes, .modes([.mode(1), .mode(0), .common])), asleep), Log.Entry(.asleepForEver, asleep),
      Log.Entry(.ranWith(.stopped), after), Log.Entry(.answer(.date(0), .tick(nil)), after),
    ])
    #expect(
      log.description == "1m0 E AW.2 S1 @3 modes=common+m0+m1~ asleep-for-ever~ 0- =stopped date(T0)=none")
  }
}
