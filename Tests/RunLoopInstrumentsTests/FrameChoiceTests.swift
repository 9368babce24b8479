// SPDX-License-Identifier: Apache-2.0

import RunLoopSymbols
import Testing

@Suite("The choice of a frame") struct FrameChoiceTests {
  @Test("a closure of a main.swift stands in top-level code")
  func topLevel() {
    let frame = { (symbol: String) in CodeFrame(symbol: symbol, file: "main.swift", line: 3) }
    #expect(FrameChoice.site([frame("$s4mainyycfU_")])?.function == "closure #1 in top-level code")
    #expect(
      FrameChoice.site([frame("$s4mainyycfU_yyXEfU0_")])?.function == "closure #2 in closure #1 in top-level code")
  }
}
