// SPDX-License-Identifier: Apache-2.0

import TestRules
import TestSupport
import Testing

@Suite("Foundation at the end of a thread", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct ThreadEndUseTests {
  @Test(
    "code that runs at a thread's end can use Foundation, on every kind of thread", .rule(.r115, .m36))
  func everywhere() throws {
    let list = try runProgram("thread-ends", ["list"]).output.split(separator: "\n")
    let cases = list.map { $0.split(separator: "\t").map(String.init) }
    #expect(cases.count >= 90 && cases.allSatisfy { $0.count == 2 }, "\(list)")
    // Each case is a process; the last line names the use that failed.
    for arguments in cases {
      let (status, output) = try runProgram("thread-ends", arguments)
      let lines = output.split(separator: "\n")
      #expect(status == 0 && lines.last == "done", "\(arguments): \(status) at \(lines.last ?? "the start")")
      #expect(lines.count == 23)
    }
  }
}
