// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing

@testable import RunLoopCore

@Suite("The calls that a source owes for a mode")
struct ModeCallsTests {
  enum Event: CaseIterable {
    case enters, leaves, begins, returns
  }

  /// Plays a history given as letters, and writes what each `b` begins: `s`, `c`, or `-` for nothing.
  private func play(_ history: String) -> (log: String, calls: ModeCalls) {
    var calls = ModeCalls()
    var log = ""
    for letter in history {
      switch letter {
      case "e": calls.enter()
      case "l": calls.leave()
      case "b": log += calls.begin().map { $0 == .schedule ? "s" : "c" } ?? "-"
      default: calls.end()
      }
    }
    return (log, calls)
  }

  @Test(
    "a history begins these calls", .rule(.r72, .r73),
    arguments: [
      // Entering and leaving, each reported in time.
      ("eb", "s"), ("ebrb", "s-"), ("ebrlb", "sc"), ("ebrlbrb", "sc-"), ("ebrlbreb", "scs"),
      // Leaving before any call.
      ("elb", "-"), ("eleb", "s"), ("elelb", "-"),
      // Leaving during the schedule call; the cancel call waits for it to return.
      ("eblb", "s-"), ("eblbrb", "s-c"), ("eblerb", "sc"), ("eblerbrb", "scs"), ("eblelrb", "sc"), ("eblelrbrb", "sc-"),
      // Entering during the cancel call.
      ("ebrlbeb", "sc-"), ("ebrlberb", "scs"), ("ebrlbelrb", "sc-"),
      // Entering again before the cancel call has begun.
      ("ebrleb", "sc"), ("ebrlebrb", "scs"), ("ebrlelbrb", "sc-"),
    ])
  func table(history: String, begun: String) { #expect(play(history).log == begun) }

  @Test(
    "every history of nine events has its calls in turn, and ends with as many cancels as schedules", .rule(.r72, .r73)
  )
  func everyHistory() {
    var histories = 0
    extend(ModeCalls(), isIn: false, begun: [], left: 9) { calls, isIn, begun in
      histories += 1
      var calls = calls
      var begun = begun
      // The running or next call makes the calls that are due.
      if calls.running != nil { calls.end() }
      while let call = calls.begin() {
        begun.append(call)
        calls.end()
      }
      let inTurn = begun.indices.allSatisfy { begun[$0] == ($0.isMultiple(of: 2) ? .schedule : .cancel) }
      guard inTurn, calls.isSettled, begun.count.isMultiple(of: 2) != isIn else {
        Issue.record("\(begun), in the mode: \(isIn), \(calls)")
        return
      }
    }
    #expect(histories > 1000)
  }

  /// Plays every possible event, and every history that continues with it.
  private func extend(
    _ calls: ModeCalls, isIn: Bool, begun: [ModeCalls.Call], left: Int,
    _ check: (ModeCalls, Bool, [ModeCalls.Call]) -> Void
  ) {
    guard left > 0 else { return check(calls, isIn, begun) }
    for event in Event.allCases {
      var (calls, isIn, begun) = (calls, isIn, begun)
      switch event {
      case .enters:
        guard !isIn else { continue }
        calls.enter()
        isIn = true
      case .leaves:
        guard isIn else { continue }
        calls.leave()
        isIn = false
      case .begins:
        if let call = calls.begin() { begun.append(call) }
      case .returns:
        guard calls.running != nil else { continue }
        calls.end()
      }
      extend(calls, isIn: isIn, begun: begun, left: left - 1, check)
    }
  }
}
