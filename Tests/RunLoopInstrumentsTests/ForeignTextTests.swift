// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopTimeline
import Testing

import class RunLoopThreads.ResidentThread
import enum RunLoopInstruments.Instruments

/// Names that another user has made up, so that whoever looks at the process runs or believes them.
@Suite("Foreign texts", .ownThread) struct ForeignTextTests {
  /// A sequence that a terminal runs (CSI in C1 and in C0), DEL, a mark that reverses what is behind it, and a line.
  static let name = "x\u{9b}31mRED\u{9d}0;owned\u{9c}\u{7f}\u{1b}[2J\u{202e}abc\nFAKE LINE 1234 idle\u{2028}\u{e0041}"

  private func isHarmless(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy {
      $0.value >= 0x20 && !(0x7f...0x9f ~= $0.value) && !["\u{202e}", "\u{2028}", "\u{e0041}"].contains($0)
    }
  }

  @Test("are shown without what they would do, and are numbers for programs")
  func values() throws {
    #expect(ForeignText.shown("plain – ☃ 👨‍👩‍👧 \u{200d}") == "plain – ☃ 👨‍👩‍👧 \u{200d}")
    #expect(isHarmless(ForeignText.shown(Self.name)))
    #expect(ForeignText.shown("a\nb\tc\u{202e}d\u{7f}") == "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}")
    let quoted = ForeignText.quoted(Self.name)
    #expect(isHarmless(quoted))
    #expect(quoted.contains("\\u009b31mRED\\u009d0;owned\\u009c\\u007f\\u001b[2J\\u202eabc\\u000aFAKE"))
    // They are the same text again for whoever reads the document.
    let read = try JSONSerialization.jsonObject(with: Data("[\(quoted)]".utf8)) as? [String]
    #expect(read == [Self.name])
    #expect(ForeignText.quoted("</script>", isInPage: true) == "\"\\u003c/script\\u003e\"")
    for value in (0..<0x1_1000).compactMap(Unicode.Scalar.init) {
      let category = value.properties.generalCategory
      guard category == .control || category == .lineSeparator || category == .paragraphSeparator else { continue }
      #expect(ForeignText.shown("\(value)") == "\u{fffd}")
      #expect(!ForeignText.quoted("\(value)").unicodeScalars.contains(value))
    }
  }
}
