// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import Testing

/// Core Foundation's loop and ours give these logs, word for word, and so does the model.
///
/// The form in which `conformance` prints a program.
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

/// Both loops give this log, word for word, and so does the model.
func expectLogs(of program: Program, _ log: String, sourceLocation: SourceLocation = #_sourceLocation) {
  expectLogs(of: program, coreFoundation: log, ours: log, sourceLocation: sourceLocation)
}
