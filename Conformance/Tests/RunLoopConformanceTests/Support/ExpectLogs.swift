// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import Testing

/// Expects these logs from Core Foundation's loop, from ours and from the model, word for word.
///
/// `conformance` prints programs in this form.
func expectLogs(
  of program: Program, coreFoundation: String, ours: String, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(program.faults == [], sourceLocation: sourceLocation)
  let logs = Comparison().logs(of: program)
  #expect(logs.coreFoundation.description == coreFoundation, sourceLocation: sourceLocation)
  #expect(logs.ours.description == ours, sourceLocation: sourceLocation)
  #expect(logs.modelOfCoreFoundation.description == coreFoundation, "the model", sourceLocation: sourceLocation)
  #expect(logs.modelOfOurs.description == ours, "the model", sourceLocation: sourceLocation)
}

/// Expects the same log from both loops and from the model, word for word.
func expectLogs(of program: Program, _ log: String, sourceLocation: SourceLocation = #_sourceLocation) {
  expectLogs(of: program, coreFoundation: log, ours: log, sourceLocation: sourceLocation)
}
