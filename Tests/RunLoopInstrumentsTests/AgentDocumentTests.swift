// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments
import Testing

@Suite("Documents of the agent") struct AgentDocumentTests {
  @Test(
    "an agent document reads back as it was written",
    arguments: [
      AgentDocument.null, .bool(true), .int(.min), .int(.max), .text("a \"b\" \\ \u{1} é 😀\n"), .list([]),
      .object([:]), .list([.int(1), .object(["a": .list([.null]), "": .bool(false)])]),
    ])
  func roundTrip(document: AgentDocument) {
    #expect(AgentDocument(bytes: document.bytes) == document)
  }

  @Test(
    "escapes, surrogate pairs and whitespace in a document are read",
    arguments: [
      (#" { "a" : [ 1 , -2 ] } "#, AgentDocument.object(["a": .list([.int(1), .int(-2)])])),
      (#""\b\f\n\r\t\/\\\" \u00e9 \ud83d\ude00""#, .text("\u{8}\u{c}\n\r\t/\\\" é 😀")),
      ("\ttrue\n", .bool(true)), (#"{"a": 1, "a": 2}"#, .object(["a": .int(2)])),
    ])
  func reading(text: String, document: AgentDocument) {
    #expect(AgentDocument(bytes: text.utf8) == document)
  }

  @Test(
    "an invalid agent document is rejected",
    arguments: [
      "", " ", "{", "}", "[", "[1", "[1,", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "nul", "tru", "1.5",
      "1e3",
      "+1", "-", "9223372036854775808", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
      "\"\\udc00\"", "\"\u{1}\"", "1 2", "[1]]", "nullx", "\"\\u+123\"",
    ])
  func rejected(text: String) {
    #expect(AgentDocument(bytes: text.utf8) == nil)
  }

  @Test("a document is rejected if it is not UTF-8 or nested too deeply")
  func depth() {
    #expect(AgentDocument(bytes: [34, 0xff, 34]) == nil)
    func nested(_ depth: Int) -> AgentDocument? {
      AgentDocument(bytes: (String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
    }
    #expect(nested(33) != nil)
    #expect(nested(34) == nil)
    #expect(nested(1_000_000) == nil)
  }
}
