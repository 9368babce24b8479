// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import LaboratoryKit

@Suite("JSON reports")
struct JSONTests {
  @Test("with --verbose the array stays valid and the logs are written to standard error")
  func verbose() async {
    await #expect(processExitsWith: .success) {
      let printed = Record()
      let complaints = Record()
      let output = Output(print: { printed.write($0) }, complain: { complaints.write($0) })
      _ = LabCommand(output: output).run(["--json", "--verbose", "D2"])
      let parsed = try JSONSerialization.jsonObject(with: Data(printed.lines.joined(separator: "\n").utf8))
      #expect((parsed as? [Any])?.count == 1)
      #expect(complaints.lines.dropFirst().first == "D2  00:00:01.000  kCFRunLoopRun… = 1 // finished")
    }
  }

  @Test(
    "a string survives being written and read",
    arguments: [
      "", "plain", "\"quoted\" \\ back", "\u{0}\u{1}\u{8}\t\n\u{c}\r\u{1f}\u{7f}", "\r\n", "运行循环 🌰", "\u{2028}",
    ])
  func strings(_ string: String) throws {
    let parsed = try JSONSerialization.jsonObject(with: Data("[\(jsonString(string))]".utf8))
    let read = try #require((parsed as? [String])?.first)
    #expect(Array(read.unicodeScalars) == Array(string.unicodeScalars))
  }

  @Test("control characters, quotes and backslashes are escaped")
  func escapes() {
    #expect(jsonString("a\"b\\c\n\u{1}") == #""a\"b\\c\n\u0001""#)
  }

  @Test("seconds are a number with six decimals")
  func seconds() {
    #expect(jsonSeconds(.zero) == "0.000000")
    #expect(jsonSeconds(.microseconds(1_000_042)) == "1.000042")
    #expect(jsonSeconds(.milliseconds(12)) == "0.012000")
  }
}
