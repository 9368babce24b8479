// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// Headers read line by line, without a connection.
@Suite struct HeadReaderTests {
  private func read(
    _ text: String, limit: Int = 10_000, isStrict: Bool = false
  ) -> (HeadReader, HeadReader.Step) {
    var reader = HeadReader(limit: limit, isStrict: isStrict)
    var last = HeadReader.Step.more
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      let bytes = Array((line + "\n").utf8)
      last = bytes.withUnsafeBytes { reader.take($0) }
      if last != .more, last != .interim { break }
    }
    return (reader, last)
  }

  private func head(_ text: String) -> Head? { if case .head(let head) = read(text).1 { head } else { nil } }

  @Test("the reader reports the status, the headers and the length")
  func plain() {
    let head = head("HTTP/1.1 404 Not here\nContent-Length: 12\nA: b\nA:c  \nE:\n\n")
    #expect(head?.status == 404)
    #expect(head?.status.reasonPhrase == "Not here")
    #expect(head?.length == 12)
    #expect(head?.headers.values(of: "a") == ["b", "c"])
    #expect(head?.headers["E"] == "")
  }

  @Test("a header field may be continued on further lines")
  func folded() { #expect(head("HTTP/1.1 200 OK\nA: b\n  c\n\td\n\n")?.headers["A"] == "b c d") }

  @Test("a field may continue on many lines at linear cost, and the next line starts another field")
  func foldedOften() {
    let lines = String(repeating: " c\n", count: 100_000)
    let (_, step) = read("HTTP/1.1 200 OK\nA: b\n\(lines)B: d\n e\n\n", limit: .max)
    guard case .head(let head) = step else { return #expect(step == .more) }
    #expect(head.headers["A"] == "b" + String(repeating: " c", count: 100_000))
    #expect(head.headers["B"] == "d e")
    #expect(head.headers.fields.count == 2)
  }

  @Test("spaces around a value are removed, and a value of only spaces is empty")
  func spaces() {
    let headers = head("HTTP/1.1 200 OK\nA:\t b c \t\nB:  \nC:d\n\n")?.headers
    #expect(headers?.fields.map { "\($0.name)=\($0.value)" } == ["A=b c", "B=", "C=d"])
    #expect(headers?["b"] == "")
  }

  @Test("response headers are compared, hashed and changed like those that a program creates")
  func sameHeaders() {
    let made: HTTP.Headers = ["A": "b", "Set-Cookie": "x", "set-cookie": "y"]
    guard var read = head("HTTP/1.1 200 OK\nA: b\nSet-Cookie: x\nset-cookie: y\n\n")?.headers else {
      Issue.record("there is no head")
      return
    }
    #expect(read == made && read.hashValue == made.hashValue)
    #expect(read.values(of: "SET-COOKIE") == ["x", "y"])
    read["a"] = "c"
    #expect(read.fields.map(\.name) == ["Set-Cookie", "set-cookie", "a"])
    read.removeAll(of: "Set-Cookie")
    read.add("B", "d")
    #expect(read == ["a": "c", "B": "d"])
    #expect(read["Set-Cookie"] == nil)
  }

  @Test("a value that is not UTF-8 is read as Latin-1, each line by itself")
  func latin() {
    var reader = HeadReader(limit: 1000)
    var last = HeadReader.Step.more
    for line in [
      Array("HTTP/1.1 200 OK\n".utf8), Array("A: caf".utf8) + [0xe9, 10], Array(" \u{e9}t\u{e9}\n".utf8), [10],
    ] {
      last = line.withUnsafeBytes { reader.take($0) }
    }
    guard case .head(let head) = last else {
      Issue.record("there is no head")
      return
    }
    #expect(head.headers["A"] == "caf\u{e9} \u{e9}t\u{e9}")
  }

  @Test(
    "a line that is not a header field is skipped with its continuation, unless the reader is strict",
    arguments: [
      ("X Some Test: abc", .malformedLine("X Some Test: abc")), (": nothing", .malformedLine(": nothing")),
      (
        "PHP Warning: PHP Startup: no such file on line 0",
        .malformedLine("PHP Warning: PHP Startup: no such file on line 0")
      ),
      ("no colon", .malformedLine("no colon")), ("X-Foo(bar): 1", .malformedLine("X-Foo(bar): 1")),
      (String(repeating: "a b", count: 100), .malformedLine(String(String(repeating: "a b", count: 100).prefix(80)))),
    ] as [(String, HTTP.Oddity)])
  func passedOver(_ line: String, _ oddity: HTTP.Oddity) {
    let text = "HTTP/1.1 200 OK\nA: b\n\(line)\n goes on\nC: d\n e\n\n"
    let (reader, step) = read(text)
    guard case .head(let head) = step else { return #expect(step == .more) }
    #expect(head.headers == ["A": "b", "C": "d e"])
    #expect(reader.oddities == [oddity])
    guard case .failed(.badServerResponse, _) = read(text, isStrict: true).1 else {
      return #expect(Bool(false), "the strict reader takes it")
    }
  }

  @Test("a field name followed by a space is accepted, unless the reader is strict")
  func spaceBeforeColon() {
    let (reader, step) = read("HTTP/1.1 200 OK\nA : b\nSet-Cookie\t:c\n\n")
    guard case .head(let head) = step else { return #expect(step == .more) }
    #expect(head.headers == ["A": "b", "Set-Cookie": "c"])
    #expect(reader.oddities == [.spaceBeforeColon("A"), .spaceBeforeColon("Set-Cookie")])
    #expect(read("HTTP/1.1 200 OK\nA : b\n\n", isStrict: true).1 != .more)
  }

  @Test("the number of recorded irregularities is limited")
  func manyOddities() {
    let lines = String(repeating: "no field\n", count: 1000)
    #expect(read("HTTP/1.1 200 OK\n\(lines)\n").0.oddities.count == HTTP.Oddity.limit)
  }

  @Test("content encodings are listed in the order in which they were applied")
  func codings() {
    #expect(
      head("HTTP/1.1 200 OK\nContent-Encoding: gzip, identity\nContent-Encoding: Deflate\n\n")?.codings == [
        "gzip", "deflate",
      ])
  }

  @Test("the transfer coding identity means nothing, unless the reader is strict")
  func identity() {
    let text = "HTTP/1.1 200 OK\nTransfer-Encoding: Identity\n\n"
    #expect(head(text)?.endsWithConnection == true)
    #expect(head("HTTP/1.1 200 OK\nTransfer-Encoding: identity\nContent-Length: 5\n\n") == nil)
    #expect(read("HTTP/1.1 200 OK\nTransfer-Encoding: identity, chunked\n\n").0.isChunked)
    guard case .failed(.badServerResponse, _) = read(text, isStrict: true).1 else {
      return #expect(Bool(false), "the strict reader takes it")
    }
  }

  @Test("the size limit counts all headers and trailers of a response")
  func limit() {
    let text = "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n"
    #expect(read(text, limit: text.utf8.count).1 != .more)
    if case .failed(let code, _) = read(text, limit: text.utf8.count - 1).1 {
      #expect(code == .tooLarge)
    } else {
      Issue.record("the limit was not noticed")
    }
  }

  @Test("an HTTP/2 status line is accepted only if HTTP/2 was offered, and in libcurl's spelling")
  func versions() {
    func head(_ line: String, offered: Bool) -> Bool {
      var reader = HeadReader(limit: 1000, speaksHTTP2: offered)
      return Array("\(line)\r\n".utf8).withUnsafeBytes { reader.take($0) } == .more
    }
    #expect(head("HTTP/2 200 ", offered: true))
    #expect(!head("HTTP/2 200 ", offered: false))
    for line in ["HTTP/2 200 OK", "HTTP/2.0 200 ", "HTTP/3 200 "] { #expect(!head(line, offered: true)) }
  }

  @Test("the reader knows whether the headers are complete")
  func completeness() {
    #expect(!read("HTTP/1.1 200 OK\nA: b\n").0.isComplete)
    #expect(read("HTTP/1.1 200 OK\nA: b\n\n").0.isComplete)
    #expect(!read("HTTP/1.1 100 Continue\n\n").0.isComplete)
  }

  @Test(
    "a content range is parsed, and a contradictory one is ignored",
    arguments: [
      ("bytes 0-4/10", "0-4/10"), ("bytes */10", "-/10"), ("Bytes 5-5/*", "5-5/"), ("bytes 4-0/10", ""),
      ("bytes 0-10/10", ""), ("items 0-4/10", ""), ("bytes 0-4", ""), ("bytes -4/10", ""),
      ("bytes 0-99999999999999999999/*", ""),
    ])
  func ranges(_ text: String, _ expected: String) {
    let range = ContentRange(text)
    let bounds = range?.bounds.map { "\($0.lowerBound)-\($0.upperBound)" } ?? "-"
    #expect((range.map { "\(bounds)/\($0.total.map(String.init) ?? "")" } ?? "") == expected)
  }

  @Test("only a strong tag or a date identifies a version")
  func validators() {
    #expect(Validator(["ETag": "\"a\""])?.text == "\"a\"")
    #expect(Validator(["ETag": "W/\"a\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]) == nil)
    #expect(Validator(["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]) != nil)
    #expect(Validator(["Last-Modified": "yesterday"]) == nil)
  }

  @Test(
    "HTTP dates are parsed in all their formats",
    arguments: [
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
      "Sun, 06-Nov-1994 08:49:37 GMT",
    ])
  func dates(_ text: String) { #expect(WebDate.read(text) == 784_111_777) }

  @Test(
    "an invalid HTTP date is nil",
    arguments: ["", "0", "Sun, 32 Nov 1994 08:49:37 GMT", "06 Nov 1994", "06 Nov 1994 25:00:00"])
  func noDates(_ text: String) { #expect(WebDate.read(text) == nil) }
}
