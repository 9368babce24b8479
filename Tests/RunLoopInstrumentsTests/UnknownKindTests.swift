// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopInstruments
import RunLoopToolKit
import Testing

@Suite("Hangs of unknown kind") struct UnknownKindTests {
  @Test("a call-out that began before the first look, and whose stack cannot be read, has no kind")
  func kind() throws {
    let text = """
      {"loop": 1, "thread": 2, "threadName": "importer", "depth": 1, "begin": 0, "processor": "blocked", "stack": [],
      "samples": 0, "isBacklog": false, "sites": [], "leftOut": 0}
      """
    let hang = try JSONDecoder().decode(HangReport.self, from: Data(text.utf8)).symbolicated()
    #expect(hang.kind == nil)
    #expect(hang.code == nil)
    #expect(hang.stack.isEmpty)
  }
}
