// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The wake word: at random", .timeLimit(.minutes(20)))
struct WakeWordModelTests {
  @Test(
    "the word agrees with plain values under random runs, sleeps and posts", .rule(.r46, .r47, .r48, .m2, .m26),
    arguments: 1...8)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let word = WakeWord()
    var plain = PlainWord()
    var around: [WakeState] = []
    for _ in 0..<3000 {
      let event: WakeState.Event
      switch random.below(12) {
      case 0 where plain.isAwake && plain.runs.count < 4: event = .beginRun
      case 1 where plain.isAwake && !plain.runs.isEmpty: event = .endRun(before: around.removeLast())
      case 2...3 where plain.isAwake && !plain.runs.isEmpty: event = .beginPass
      case 4...5 where plain.isAwake && plain.listens:
        event = .announceSleep([.futex, .virtual, .epoll, .looking][random.below(4)])
      case 6 where plain.sleeper == .looking && random.oneIn(2): event = .fallAsleep(.epoll)
      case 6: event = .awaken
      case 7 where plain.isAwake && !plain.runs.isEmpty: event = .endWait
      case 8, 9: event = .post(.unknown)
      default: event = .wakeUp(.unknown)
      }
      if event == .beginRun { around.append(word.state) }
      let woken = plain.apply(event)
      #expect(word.apply(event).woken == woken, "\(event)")
      let state = word.state
      #expect(state.sleeper == plain.sleeper)
      #expect(state.isRunning == !plain.runs.isEmpty)
      #expect(state.isListening == plain.listens)
      #expect(state.isWoken == (plain.runs.last?.isWoken ?? false))
      #expect(state.isLate == (plain.runs.last?.isLate ?? false))
    }
  }

  @Test(
    "with two producers and a sleeper on the futex, no posted work is left unseen during a sleep",
    .rule(.r44, .r45, .m2, .m3), arguments: [1, 3, 100])
  func twoProducers(burst: Int) {
    let count = 2000
    let shared = Shared()
    let producers = (0..<2).map { producer in
      startThread {
        for number in 0..<count {
          precondition(
            shared.inbox.append(inDefaultMode: Block { shared.note(producer, number) }), "the inbox is open")
          // An occasional wake-up, with as many posts as fit in between.
          if number % burst == burst - 1 {
            shared.wake(number % 3 == 0 ? shared.word.apply(.wakeUp(.unknown)).woken : shared.word.post())
          }
        }
        shared.wake(shared.word.post())
      }
    }
    shared.word.apply(.beginRun)
    while shared.next != [count, count] {
      shared.word.apply(.beginPass)
      shared.takeAll()
      if shared.next != [count, count] { shared.sleep() }
      shared.word.apply(.endWait)
    }
    for producer in producers { producer.result() }
    #expect(shared.isInOrder)
  }
}

/// The word's contents as plain values.
private struct PlainWord {
  struct Run {
    var listens = true
    var isWoken = false
    var isLate = false
  }

  var sleeper = WakeState.Sleeper.nobody
  /// The active runs, innermost last.
  var runs: [Run] = []

  var isAwake: Bool { sleeper == .nobody }
  var listens: Bool { runs.last?.listens ?? false }

  /// Applies the event, and returns the sleeper to wake.
  mutating func apply(_ event: WakeState.Event) -> WakeState.Sleeper {
    switch event {
    case .beginRun: runs.append(Run())
    case .endRun:
      let ended = runs.removeLast()
      if ended.isWoken || ended.isLate { noteWakeUp() }
    case .beginPass:
      runs[runs.count - 1].listens = true
      runs[runs.count - 1].isLate = false
    case .announceSleep(let sleeper): self.sleeper = sleeper
    case .fallAsleep(let sleeper): if self.sleeper == .looking { self.sleeper = sleeper }
    case .awaken: sleeper = .nobody
    case .endWait:
      runs[runs.count - 1].listens = false
      runs[runs.count - 1].isWoken = false
    case .post: return takeSleeper()
    case .wakeUp:
      noteWakeUp()
      return takeSleeper()
    }
    return .nobody
  }

  private mutating func noteWakeUp() {
    guard let run = runs.last else { return }
    if run.listens { runs[runs.count - 1].isWoken = true } else { runs[runs.count - 1].isLate = true }
  }

  private mutating func takeSleeper() -> WakeState.Sleeper {
    defer { sleeper = .nobody }
    return sleeper
  }
}

/// A word, and an inbox whose lock guards the work.
private final class Shared: @unchecked Sendable {
  // Sendable: only the sleeping thread uses the counts.
  let word = WakeWord()
  let inbox = Inbox()
  private(set) var next = [0, 0]
  private(set) var isInOrder = true
  private var taken = Arrivals()

  func note(_ producer: Int, _ number: Int) {
    if next[producer] != number { isInOrder = false }
    next[producer] += 1
  }

  func wake(_ sleeper: WakeState.Sleeper) {
    if sleeper == .futex { word.wakeSleeper() }
  }

  /// Runs all posted work; false if there was none.
  @discardableResult
  func takeAll() -> Bool {
    inbox.drain(into: &taken)
    guard !taken.isEmpty else { return false }
    while !taken.inDefaultMode.isEmpty {
      if case .single(let block) = taken.inDefaultMode.takeFirst().work { block.body() }
    }
    return true
  }

  /// Sleeps as a loop does: announces it, checks once more, and sleeps while the word is unchanged.
  func sleep() {
    while true {
      let asleep = word.apply(.announceSleep(.futex)).after
      let hasWork = takeAll()
      if !hasWork, !asleep.isWoken { word.sleep(while: asleep, until: .never) }
      let isWoken = word.apply(.awaken).before.isWoken
      if hasWork || isWoken { return }
    }
  }
}
