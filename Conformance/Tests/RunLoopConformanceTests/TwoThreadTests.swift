// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("Another thread, at every point of a pass", .timeLimit(.minutes(20)))
struct TwoThreadTests {
  @Test("both loops follow the model, whatever the other thread does", arguments: TwoThreads.Point.allCases)
  func everything(at point: TwoThreads.Point) {
    let comparison = Comparison()
    for operation in TwoThreads.Operation.allCases {
      for setting in TwoThreads.Setting.allCases {
        let program = TwoThreads(point, operation, setting).program
        #expect(program.faults == [])
        let logs = comparison.logs(of: program)
        let verdict = comparison.verdict(on: program, from: logs)
        guard verdict.isDifferent else { continue }
        Issue.record("\(operation), \(setting): \(verdict)\n\(program)\n\(logs)")
      }
    }
  }

  @Test(
    "the point is reached in every setting that has it", .rule(.r39, .r40, .r45, .r48),
    arguments: TwoThreads.Point.allCases)
  func reached(_ point: TwoThreads.Point) {
    for setting in TwoThreads.Setting.allCases {
      // The run after a poll handles what that has left out.
      let asked = TwoThreads(point, .ask, setting)
      let answers = RunLoopMachine().run(asked.program).entries.count { $0.event.isAnswer }
      #expect(answers == 8, "\(point), \(setting)")
    }
  }
}

extension Log.Event {
  fileprivate var isAnswer: Bool {
    if case .answer = self { return true }
    return false
  }
}

extension Comparison.Verdict {
  var isDifferent: Bool {
    if case .different = self { return true }
    return false
  }
}
