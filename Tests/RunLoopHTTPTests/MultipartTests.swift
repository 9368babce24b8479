// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopHTTP

/// Multipart forms.
@Suite struct MultipartTests {
  private func request(_ form: HTTP.Multipart, to url: String) -> HTTP.Request {
    HTTP.Request(.post, url, headers: ["Content-Type": form.contentType], body: form.content)
  }

  @Test(
    "a form has its parts in order, and announces its length unless a part has none", arguments: [true, false])
  func parts(isKnown: Bool) async throws {
    let scratch = Scratch()
    scratch.make("file", text: "of a file")
    let seen = Box<(head: String, body: String)>(("", ""))
    let server = try LyingServer { exchange in
      seen.value = (exchange.head, String(decoding: exchange.body, as: UTF8.self))
      exchange.answer("")
    }
    let form = HTTP.Multipart([
      .init("a\"\r\n", .text("value")),
      .init("file", .file(scratch("file")), fileName: "ü.txt", type: "text/plain"),
      .init(
        "stream",
        .stream(length: isKnown ? 6 : nil) {
          AsyncStream<[UInt8]> { continuation in
            continuation.yield(Array("str".utf8))
            continuation.yield(Array("eam".utf8))
            continuation.finish()
          }
        }),
    ])
    try await withClient { client in #expect(await end(client, request(form, to: server.url())) == "200 ") }
    let line = "--\(form.boundary)"
    let expected = """
      \(line)\r\nContent-Disposition: form-data; name="a%22%0D%0A"\r\n\r\nvalue\r\n\
      \(line)\r\nContent-Disposition: form-data; name="file"; filename="ü.txt"\r\nContent-Type: text/plain\r\n\r\n\
      of a file\r\n\
      \(line)\r\nContent-Disposition: form-data; name="stream"\r\n\r\nstream\r\n\(line)--\r\n
      """
    #expect(seen.value.body == expected)
    #expect(seen.value.head.contains("Content-Length: \(expected.utf8.count)\r\n") == isKnown)
    #expect(seen.value.head.contains("Content-Type: multipart/form-data; boundary=\(form.boundary)\r\n"))
  }

  @Test("a form without sequences can be resent, and one with a sequence is created again")
  func again() async throws {
    let bodies = Box<[[UInt8]]>([])
    let server = try LyingServer { exchange in
      bodies.update { $0.append(exchange.body) }
      if exchange.path == "/" {
        exchange.answer("", status: "307 There", "Location: /there")
      } else {
        exchange.answer("")
      }
    }
    let form = HTTP.Multipart([.init("a", .bytes(pattern(100_000))), .init("b", .text(""))])
    try await withClient { client in #expect(await end(client, request(form, to: server.url())) == "200 ") }
    #expect(bodies.value.count == 2 && bodies.value[0] == bodies.value[1] && bodies.value[0].count > 100_000)
    #expect(form.content.isRepeatable)
    let stream = HTTP.Content.stream { AsyncStream<[UInt8]> { $0.finish() } }
    #expect(!HTTP.Multipart([.init("a", stream)]).content.isRepeatable)
  }

  @Test("a part can be a form of its own, and its type can have a quoted parameter")
  func nested() throws {
    let scratch = Scratch()
    scratch.make("file", text: "of a file")
    let inner = HTTP.Multipart([
      .init("text", .text("é"), type: "text/plain; charset=\"utf-8\"\r\nX: y"), .init("file", .file(scratch("file"))),
    ])
    let outer = HTTP.Multipart([.init("inner", inner.content, type: inner.contentType)])
    let expected = """
      --\(outer.boundary)\r\nContent-Disposition: form-data; name="inner"\r\nContent-Type: \(inner.contentType)\r\n\r\n\
      --\(inner.boundary)\r\nContent-Disposition: form-data; name="text"\r\n\
      Content-Type: text/plain; charset="utf-8"%0D%0AX: y\r\n\r\né\r\n\
      --\(inner.boundary)\r\nContent-Disposition: form-data; name="file"\r\n\r\nof a file\r\n--\(inner.boundary)--\r\n\
      \r\n--\(outer.boundary)--\r\n
      """
    let source = try outer.content.open {}
    #expect(source.length == Int64(expected.utf8.count))
    var (body, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1000))
    while case .bytes(let count) = buffer.withUnsafeMutableBytes({ source.read(into: $0) }) { body += buffer[..<count] }
    #expect(String(decoding: body, as: UTF8.self) == expected)
  }

  @Test("a file that is missing or grows is an error, and so is an empty form")
  func faults() throws {
    let scratch = Scratch()
    #expect(throws: HTTP.Error.self) {
      try HTTP.Multipart([.init("a", .file(scratch("none")))]).content.open {}
    }
    scratch.make("file", text: "abc")
    let source = try HTTP.Multipart([.init("a", .file(scratch("file")))]).content.open {}
    scratch.make("file", text: "abcdef")
    var buffer = [UInt8](repeating: 0, count: 1000)
    var last = BodyRead.end
    repeat {
      last = buffer.withUnsafeMutableBytes { source.read(into: $0) }
    } while last != .end && !"\(last)".contains("failed")
    guard case .failed = last else { return #expect(Bool(false), "\(last)") }
    let nothing = HTTP.Multipart()
    #expect(HTTP.Content.wholeBytes(nothing.content) == Array("--\(nothing.boundary)--\r\n".utf8))
  }
}
