// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing

@testable import RunLoopCore

@Suite("The wake word")
struct WakeWordTests {
  @Test("each event turns each possible state into the expected one", .rule(.r46, .r47, .r48, .m2))
  func table() {
    for row in transitions {
      let (state, woken) = row.before.applying(row.event)
      #expect(state == row.after, "\(row.event) in \(row.before): \(state), not \(row.after)")
      #expect(woken == row.woken, "\(row.event) in \(row.before)")
    }
  }

  @Test("the transition table has one row per possible pair, and its states are the reachable ones")
  func complete() {
    let states = Set(transitions.map(\.before))
    for state in states {
      let events = Set(transitions.filter { $0.before == state }.map(\.event))
      var expected: Set<WakeState.Event> = [.awaken, .post(.unknown), .wakeUp(.unknown)]
      if state.sleeper == .nobody {
        expected.formUnion([.beginRun, .beginPass, .endWait, .endRun(before: idle)])
        if state.isListening {
          expected.formUnion([
            .announceSleep(.futex), .announceSleep(.virtual), .announceSleep(.hosted), .announceSleep(.looking),
            .fallAsleep(.futex),
          ])
        }
        if state.isRunning { expected.formUnion([.endRun(before: listening), .endRun(before: answered)]) }
      }
      if state == looking { expected.insert(.fallAsleep(.futex)) }
      // Outside every run there is no pass, wait or sleep, and no run ends.
      if !state.isRunning { expected.subtract([.beginPass, .endWait, .endRun(before: idle)]) }
      #expect(events == expected, "\(state)")
      #expect(transitions.count { $0.before == state } == expected.count, "twice in \(state)")
    }
    #expect(states == reachable())
  }

  /// All states reachable by a loop's events in their possible orders.
  private func reachable() -> Set<WakeState> {
    var found: Set<WakeState> = [idle]
    var fresh = [idle]
    while let state = fresh.popLast() {
      for row in transitions where row.before == state {
        let after = state.applying(row.event).state
        if found.insert(after).inserted { fresh.append(after) }
      }
    }
    return found
  }

  @Test("of many wake-ups and posts, one makes the system call that wakes the sleeper", .rule(.r44, .r45))
  func oneCall() {
    for sleeper in [WakeState.Sleeper.futex, .virtual, .hosted] {
      let asleep = listening.applying(.announceSleep(sleeper)).state
      for first in [WakeState.Event.post(.unknown), .wakeUp(.unknown)] {
        let (awake, woken) = asleep.applying(first)
        #expect(woken == sleeper)
        for second in [WakeState.Event.post(.unknown), .wakeUp(.unknown)] {
          #expect(awake.applying(second).woken == .nobody)
        }
      }
    }
  }

  @Test("a wake-up that a nested run leaves unanswered goes to the run around it", .rule(.r49, .m2))
  func nestedRun() {
    let nested = listening.applying(.beginRun).state.applying(.wakeUp(.unknown)).state
    #expect(nested.applying(.endRun(before: listening)).state.isWoken)
    #expect(nested.applying(.endRun(before: answered)).state.isLate)
    #expect(nested.applying(.endRun(before: idle)).state == idle)
    let late = listening.applying(.beginRun).state.applying(.endWait).state.applying(.wakeUp(.unknown)).state
    #expect(late.applying(.endRun(before: listening)).state.isWoken)
    #expect(late.applying(.endRun(before: answered)).state.isLate)
    #expect(late.applying(.endRun(before: idle)).state == idle)
  }

  @Test(
    "the poster that wakes the loop leaves its cause, and those after it do not", .rule(.m19),
    arguments: [WakeState.Sleeper.futex, .virtual, .epoll, .hosted, .looking], WakeState.Cause.allCases)
  func cause(sleeper: WakeState.Sleeper, cause: WakeState.Cause) {
    let asleep = listening.applying(.announceSleep(sleeper)).state
    for first in [WakeState.Event.post(cause), .wakeUp(cause)] {
      let (state, caller) = asleep.applying(first)
      #expect(state.cause == cause && state.sleeper == .nobody && caller == sleeper)
      for second in WakeState.Cause.allCases {
        #expect(state.applying(.post(second)).state == state)
        let woken = state.applying(.wakeUp(second))
        #expect(woken.state.cause == cause && woken.state.isWoken && woken.woken == .nobody)
      }
      let awake = state.applying(.awaken).state
      #expect(awake.cause == .unknown && awake.isWoken == state.isWoken)
      // The next sleep begins without it.
      #expect(awake.applying(.announceSleep(sleeper)).state.cause == .unknown)
    }
  }

  @Test("a poster that finds no sleeping loop records no cause", .rule(.m19), arguments: WakeState.Cause.allCases)
  func noCause(cause: WakeState.Cause) {
    for state in Set(transitions.map(\.before)) where state.sleeper == .nobody {
      #expect(state.applying(.post(cause)).state == state)
      #expect(state.applying(.wakeUp(cause)).state.cause == .unknown)
    }
  }

  @Test("every wake state has its own description")
  func descriptions() {
    let states = Set(transitions.map(\.before))
    #expect(Set(states.map(\.description)).count == states.count)
  }

  @Test("the wake word applies events to itself")
  func word() {
    let word = WakeWord()
    #expect(word.state == idle)
    #expect(word.post() == .nobody)
    #expect(word.apply(.wakeUp(.unknown)).woken == .nobody)
    #expect(word.state == idle)
    let (before, after, called) = word.apply(.beginRun)
    #expect(before == idle && after == listening && called == .nobody)
    word.apply(.announceSleep(.virtual))
    #expect(word.post() == .virtual)
    #expect(word.state == listening)
    word.apply(.wakeUp(.unknown))
    #expect(word.state == woken)
    // The word differs from the announced one, so the sleep returns at once.
    word.sleep(while: listening, until: .never)
  }
}

@Suite("The wake word: every interleaving")
struct WakeInterleavingTests {
  private static let scripts: [[InterleavingChecker.Operation]] = [
    [.post], [.wakeUp], [.post, .post], [.post, .wakeUp], [.wakeUp, .post], [.wakeUp, .wakeUp],
  ]

  @Test(
    "with a loop and two posters, no wake-up is lost and no pass is unnecessary", .rule(.r44, .r45, .m2, .m3, .m20),
    arguments: scripts, scripts)
  func correct(first: [InterleavingChecker.Operation], second: [InterleavingChecker.Operation]) {
    let verdict = InterleavingChecker(variant: .correct, posters: [first, second]).run()
    #expect(verdict.lost == nil)
    #expect(verdict.needless == nil)
    #expect(verdict.mostPasses <= 1 + first.count + second.count)
    #expect(verdict.ends > 0)
    #expect(verdict.states > 100)
  }

  @Test(
    "no wake-up is lost in an epoll set", .rule(.r44, .r45, .m2, .m3, .m20), arguments: scripts, scripts)
  func correctInEpoll(first: [InterleavingChecker.Operation], second: [InterleavingChecker.Operation]) {
    let verdict = InterleavingChecker(variant: .correct, sleeper: .epoll, posters: [first, second]).run()
    #expect(verdict.lost == nil)
    #expect(verdict.needless == nil)
    #expect(verdict.ends > 0)
  }

  @Test(
    "no wake-up is lost with a waiting host", .rule(.r44, .r45, .m2, .m3, .m20), arguments: scripts, scripts)
  func correctHosted(first: [InterleavingChecker.Operation], second: [InterleavingChecker.Operation]) {
    let verdict = InterleavingChecker(variant: .correct, sleeper: .hosted, posters: [first, second]).run()
    #expect(verdict.lost == nil)
    #expect(verdict.needless == nil)
    #expect(verdict.ends > 0)
    #expect(verdict.states > 100)
  }

  @Test(
    "no wake-up is lost with a spin", .rule(.r33, .r44, .r45, .m2, .m3, .m20), arguments: scripts,
    [WakeState.Sleeper.futex, .epoll])
  func correctLooking(script: [InterleavingChecker.Operation], sleeper: WakeState.Sleeper) {
    for second in WakeInterleavingTests.scripts {
      let verdict = InterleavingChecker(variant: .correct, sleeper: sleeper, looks: true, posters: [script, second])
        .run()
      #expect(verdict.lost == nil)
      #expect(verdict.needless == nil)
      #expect(verdict.ends > 0)
      #expect(verdict.states > 100)
    }
  }

  @Test("a loop that spun and sleeps without checking the word loses a wake-up", .rule(.m2))
  func brokenLooking() throws {
    for sleeper in [WakeState.Sleeper.futex, .epoll] {
      let verdict = InterleavingChecker(
        variant: .sleepAfterLookUnasked, sleeper: sleeper, looks: true, posters: [[.post]]
      ).run()
      #expect(try #require(verdict.lost).contains("loop: has looked in vain"))
    }
  }

  @Test(
    "the checker finds what a hosted loop loses under a wrong protocol", .rule(.m2),
    arguments: InterleavingChecker.Variant.ofHosted)
  func brokenHosted(variant: InterleavingChecker.Variant) throws {
    let verdict = InterleavingChecker(variant: variant, sleeper: .hosted, posters: [[.post]]).run()
    #expect(try #require(verdict.lost).last?.isEmpty == false)
  }

  @Test("a gate that did not stay open would lose wake-ups from before the host's wait", .rule(.r46, .m2))
  func unlatched() throws {
    let verdict = InterleavingChecker(variant: .openUnlatched, sleeper: .hosted, posters: [[.wakeUp]]).run()
    #expect(
      try #require(verdict.lost).suffix(3) == [
        "poster 0: opens the gate", "loop: is left to its host", "poster 0: is done",
      ])
  }

  @Test("with a loop and three posters, no wake-up is lost", .rule(.m2))
  func three() {
    let verdict = InterleavingChecker(variant: .correct, posters: [[.post], [.post, .wakeUp], [.wakeUp]]).run()
    #expect(verdict.lost == nil)
    #expect(verdict.needless == nil)
  }

  @Test(
    "an epoll set named without a last check of the word loses a wake-up", .rule(.m2),
    arguments: [
      [InterleavingChecker.Operation.post], [.wakeUp],
    ])
  func brokenInEpoll(script: [InterleavingChecker.Operation]) throws {
    let verdict = InterleavingChecker(variant: .waitWithoutComparison, sleeper: .epoll, posters: [script]).run()
    #expect(try #require(verdict.lost).contains("poster 0: finds no epoll set"))
  }

  @Test(
    "the checker finds what a wrong wake protocol loses",
    arguments: InterleavingChecker.Variant.ofWord)
  func broken(variant: InterleavingChecker.Variant) throws {
    let verdict = InterleavingChecker(variant: variant, posters: [[.post], [.post]]).run()
    let steps = try #require(verdict.lost)
    #expect(steps.last?.isEmpty == false)
    // One poster suffices.
    #expect(InterleavingChecker(variant: variant, posters: [[.post]]).run().lost != nil)
  }

  @Test("the checker shows the lost wake-up: work that arrives between the last check and the announcement")
  func story() {
    let verdict = InterleavingChecker(variant: .recheckBeforeAnnounce, posters: [[.post]]).run()
    #expect(
      verdict.lost == [
        "loop: begins a pass", "loop: takes 0 pieces of work", "loop: looks again and finds 0",
        "poster 0: pushes work", "poster 0: reads the word: nobody sleeps, running, listening",
        "loop: announces its sleep", "loop: falls asleep", "poster 0: is done",
      ])
  }
}

// The thirteen possible states of a word that records no cause for the end of a sleep.
private let idle = WakeState.idle
private let listening = WakeState(bits: 0b001_1000)
private let answered = WakeState(bits: 0b000_1000)
private let woken = WakeState(bits: 0b011_1000)
private let late = WakeState(bits: 0b100_1000)
private let futex = WakeState(bits: 0b001_1001)
private let virtual = WakeState(bits: 0b001_1010)
private let hosted = WakeState(bits: 0b001_1100)
private let futexWoken = WakeState(bits: 0b011_1001)
private let virtualWoken = WakeState(bits: 0b011_1010)
private let hostedWoken = WakeState(bits: 0b011_1100)
private let looking = WakeState(bits: 0b001_1101)
private let lookingWoken = WakeState(bits: 0b011_1101)

private struct Transition {
  let before: WakeState
  let event: WakeState.Event
  let after: WakeState
  let woken: WakeState.Sleeper

  init(_ before: WakeState, _ event: WakeState.Event, _ after: WakeState, _ woken: WakeState.Sleeper = .nobody) {
    self.before = before
    self.event = event
    self.after = after
    self.woken = woken
  }
}

/// Every event in every state in which it can occur.
private let transitions: [Transition] = [
  // Outside every run. A wake-up is dropped.
  .init(idle, .beginRun, listening),
  .init(idle, .awaken, idle),
  .init(idle, .post(.unknown), idle),
  .init(idle, .wakeUp(.unknown), idle),

  // A wait lies ahead. A nested run keeps this state for its end.
  .init(listening, .beginRun, listening),
  .init(listening, .endRun(before: idle), idle),
  .init(listening, .endRun(before: listening), listening),
  .init(listening, .endRun(before: answered), answered),
  .init(listening, .beginPass, listening),
  .init(listening, .announceSleep(.futex), futex),
  .init(listening, .announceSleep(.virtual), virtual),
  .init(listening, .announceSleep(.hosted), hosted),
  .init(listening, .announceSleep(.looking), looking),
  .init(listening, .fallAsleep(.futex), listening),
  .init(listening, .awaken, listening),
  .init(listening, .endWait, answered),
  .init(listening, .post(.unknown), listening),
  .init(listening, .wakeUp(.unknown), woken),

  // The wait is over. A wake-up counts for the next pass.
  .init(answered, .beginRun, listening),
  .init(answered, .endRun(before: idle), idle),
  .init(answered, .endRun(before: listening), listening),
  .init(answered, .endRun(before: answered), answered),
  .init(answered, .beginPass, listening),
  .init(answered, .awaken, answered),
  .init(answered, .endWait, answered),
  .init(answered, .post(.unknown), answered),
  .init(answered, .wakeUp(.unknown), late),

  // A wake-up has arrived for the wait ahead.
  .init(woken, .beginRun, listening),
  .init(woken, .endRun(before: idle), idle),
  .init(woken, .endRun(before: listening), woken),
  .init(woken, .endRun(before: answered), late),
  .init(woken, .beginPass, woken),
  .init(woken, .announceSleep(.futex), futexWoken),
  .init(woken, .announceSleep(.virtual), virtualWoken),
  .init(woken, .announceSleep(.hosted), hostedWoken),
  .init(woken, .announceSleep(.looking), lookingWoken),
  .init(woken, .fallAsleep(.futex), woken),
  .init(woken, .awaken, woken),
  .init(woken, .endWait, answered),
  .init(woken, .post(.unknown), woken),
  .init(woken, .wakeUp(.unknown), woken),

  // A wake-up has arrived after the wait.
  .init(late, .beginRun, listening),
  .init(late, .endRun(before: idle), idle),
  .init(late, .endRun(before: listening), woken),
  .init(late, .endRun(before: answered), late),
  .init(late, .beginPass, listening),
  .init(late, .awaken, late),
  .init(late, .endWait, late),
  .init(late, .post(.unknown), late),
  .init(late, .wakeUp(.unknown), late),

  // The loop sleeps or is about to. The thread that removes it from the word wakes it.
  .init(futex, .awaken, listening),
  .init(futex, .post(.unknown), listening, .futex),
  .init(futex, .wakeUp(.unknown), woken, .futex),
  .init(virtual, .awaken, listening),
  .init(virtual, .post(.unknown), listening, .virtual),
  .init(virtual, .wakeUp(.unknown), woken, .virtual),
  .init(hosted, .awaken, listening),
  .init(hosted, .post(.unknown), listening, .hosted),
  .init(hosted, .wakeUp(.unknown), woken, .hosted),

  // It has announced its sleep, and finds that it was woken already.
  .init(futexWoken, .awaken, woken),
  .init(futexWoken, .post(.unknown), woken, .futex),
  .init(futexWoken, .wakeUp(.unknown), woken, .futex),
  .init(virtualWoken, .awaken, woken),
  .init(virtualWoken, .post(.unknown), woken, .virtual),
  .init(virtualWoken, .wakeUp(.unknown), woken, .virtual),
  .init(hostedWoken, .awaken, woken),
  .init(hostedWoken, .post(.unknown), woken, .hosted),
  .init(hostedWoken, .wakeUp(.unknown), woken, .hosted),

  // The loop spins. Removing it from the word is enough to wake it. Otherwise, it falls asleep.
  .init(looking, .awaken, listening),
  .init(looking, .fallAsleep(.futex), futex),
  .init(looking, .post(.unknown), listening, .looking),
  .init(looking, .wakeUp(.unknown), woken, .looking),
  .init(lookingWoken, .awaken, woken),
  .init(lookingWoken, .post(.unknown), woken, .looking),
  .init(lookingWoken, .wakeUp(.unknown), woken, .looking),
]
