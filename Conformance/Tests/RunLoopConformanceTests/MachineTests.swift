// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import TestRules
import Testing

@testable import RunLoopConformance

@Suite("Both loops on virtual time", .timeLimit(.minutes(20)))
struct MachineTests {
  /// Expects the same log on both loops, word for word.
  private func expectLog(_ program: Program, _ log: String, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(CoreFoundationMachine().run(program).description == log, sourceLocation: sourceLocation)
    #expect(RunLoopMachine().run(program).description == log, sourceLocation: sourceLocation)
  }

  @Test("time passes while the loop sleeps, to the tick, and costs nothing", .rule(.r5))
  func timers() {
    expectLog(
      Program(
        observers: [.watcher], timers: [TimerPlan(date: 100), TimerPlan(date: 3_000_000, body: .once(.stop))],
        main: [.watch, .add(.timer(0), 0), .add(.timer(1), 0), .runDefault]),
      "1m0 E BT BS BW @100 AW T0 BT BS BW @3000000 AW T1 X 0- =stopped")
  }

  @Test("another thread acts while the loop waits, and the loop is then waiting", .rule(.r33, .r45))
  func interruption() {
    expectLog(
      Program(
        sources: [SourcePlan()], observers: [.watcher], main: [.watch, .add(.source(0), 0), .runDefault],
        whileAsleep: [
          Interruption(at: 5, [.ask(.isSignalled(0)), .signal(0), .wakeUp]), Interruption(at: 7, [.stop]),
        ]),
      "1m0 E BT BS BW @5 signalled(S0)=no~ AW BT BS S0 BT BS BW @7 AW X 0- =stopped")
  }

  @Test("an interruption during a busy time is performed in the next sleep")
  func lateInterruption() {
    expectLog(
      Program(
        timers: [TimerPlan(date: 1, body: .once(.work(5))), TimerPlan(date: 9, body: .once(.stop))],
        main: [.add(.timer(0), 0), .add(.timer(1), 0), .runDefault],
        whileAsleep: [Interruption(at: 3, [.ask(.date(1))]), Interruption(at: 2, [.ask(.isValid(.timer(0)))])]),
      "@1 1m0 T0 @6 valid(T0)=no~ date(T1)=9~ @9 T1 0- =stopped")
  }

  @Test("a source logs its addition to and removal from modes, even at the thread's end", .rule(.r72, .r73, .r115))
  func modes() {
    expectLog(
      Program(
        sources: [SourcePlan(tellsModes: true)],
        observers: [.at(Stages.entry, .once(.remove(.source(0), .mode(1))))],
        timers: [TimerPlan(date: 0)],
        main: [
          .add(.source(0), 0), .add(.source(0), 0), .addCommonMode(1), .add(.source(0), .common),
          .add(.observer(0), 1), .add(.timer(0), 1), .run(1), .remove(.source(0), .common), .add(.source(0), 0),
        ]),
      "S0+m0 S0+m1 1m1 E S0-m1 T0 0- =finished S0-m0 S0+m0 S0-m0")
  }

  @Test("a loop that would sleep forever is stopped, in each of its runs")
  func asleepForEver() {
    expectLog(
      Program(
        sources: [SourcePlan(body: .once(.runDefault))], main: [.add(.source(0), 0), .signal(0), .runDefault]),
      "1m0 S0 2m0 asleep-for-ever~ 1m0 =stopped asleep-for-ever~ 0- =stopped")
  }

  @Test("another thread performs a call-out's actions, and begins no run")
  func elsewhere() {
    expectLog(
      Program(
        sources: [SourcePlan(body: .once(.elsewhere([.runDefault, .work(2), .elsewhere([.ask(.modes)]), .stop])))],
        main: [.add(.source(0), 0), .signal(0), .runDefault]),
      "1m0 S0 @2 modes=m0 0- =stopped")
  }

  @Test("runs nest up to the limit")
  func deepest() {
    let log = CoreFoundationMachine().run(
      Program(
        sources: [SourcePlan(body: .always(.signal(0), .runForSource))],
        main: [.add(.source(0), 0), .signal(0), .runForSource]))
    #expect(log.entries.map(\.state.depth).max() == Program.deepestRun)
  }

  @Test("a full log ends an endless program")
  func full() {
    let program = Program(
      sources: [SourcePlan(body: .always(.signal(0), .ask(.modes)))], timers: [TimerPlan(date: 0, interval: 1)],
      main: [.add(.source(0), 0), .add(.timer(0), 0), .signal(0), .runDefault, .runDefault, .ask(.modes)])
    let log = CoreFoundationMachine().run(program)
    #expect(log.entries.count == Log.limit)
    #expect(log == RunLoopMachine().run(program))
    #expect(log == ReferenceModel().run(program))
  }

  @Test("a program has the same log a hundred times, on several threads at once")
  func deterministic() {
    let programs = (0..<4).map { number in
      var generator = Generator(seed: 11, number: number)
      return generator.program()
    }
    for machine in [CoreFoundationMachine(), RunLoopMachine(), ReferenceModel()] as [any Machine] {
      let first = programs.map { machine.run($0) }
      let threads = (0..<4).map { _ in
        startThread { (0..<25).allSatisfy { _ in programs.map { machine.run($0) } == first } }
      }
      for thread in threads { #expect(thread.result()) }
    }
  }

  @Test("the wait for a thread is limited, and the log reports a hang")
  func hung() {
    let gate = DispatchSemaphore(value: 0)
    let thread = ProgramThread { gate.wait() }
    #expect(!thread.end(within: 0))
    gate.signal()
    #expect(thread.end())
    #expect(ProgramTask().hung(keeping: nil).description == "hung")
  }
}
