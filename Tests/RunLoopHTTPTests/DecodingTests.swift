// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Content decoding: when bodies are decoded, and by which decoder.
@Suite struct DecodingTests {
  /// "hello" in each content encoding.
  private static let gzip: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
  ]
  private static let brotli: [UInt8] = [0x40, 0x00, 0x10] + Array("hello".utf8) + [0x03]
  private static let zstd: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 5, 0x29, 0, 0] + Array("hello".utf8)

  /// Returns the status, the body and the encoding that it was decoded from.
  private func end(_ client: HTTP.Client, _ request: HTTP.Request) async -> String {
    do {
      let (body, response) = try await client.data(for: request)
      let bytes = body.text ?? "\(body.count) bytes"
      return "\(response.status.code) \(bytes) \(response.decodedFrom.joined(separator: "+"))"
    } catch let error as HTTP.Error {
      return "\(error.code)"
    } catch {
      return "\(error)"
    }
  }

  @Test(
    "Brotli and zstd are requested and decoded if their libraries are installed",
    arguments: [("br", brotli, ContentCoding.brotli), ("zstd", zstd, .zstd), ("zstd", zstd + zstd, .zstd)])
  func libraries(_ name: String, _ bytes: [UInt8], _ coding: ContentCoding) async throws {
    let server = try LyingServer { $0.answer(bytes, ["Content-Encoding: \(name)"]) }
    try await withClient { client in
      let text = String(repeating: "hello", count: bytes.count / Self.zstd.count + (coding == .brotli ? 1 : 0))
      let expected = coding.isAvailable ? "200 \(text) \(name)" : "cannotDecode"
      #expect(await end(client, HTTP.Request(server.url())) == expected)
      for cut in 1..<Self.zstd.count - 5 {
        let part = Array(bytes.prefix(cut))
        let server = try LyingServer { $0.answer(part, ["Content-Encoding: \(name)"]) }
        #expect(await end(client, HTTP.Request(server.url())) == "cannotDecode", "\(cut)")
      }
    }
    let asked = ContentCoding.field?.value.split(separator: ",").map { trimmed($0) } ?? []
    #expect(asked.contains(name) == coding.isAvailable)
  }

  @Test(
    "harmless errors in a body are ignored, unless the client is strict",
    arguments: [
      ("gzip", gzip + Array("\r\n<!-- junk -->".utf8), "gzip", .bytesAfterEnd),
      ("gzip", gzip + [1], "gzip", .bytesAfterEnd),
      ("gzip", gzip + [0, 0, 1], "gzip", .bytesAfterEnd), ("gzip", gzip + [0x1f], "gzip", .bytesAfterEnd),
      ("gzip", gzip + [0x1f, 0, 0x11], "gzip", .bytesAfterEnd),
      ("deflate", [120, 156, 203, 72, 205, 201, 201, 7, 0, 6, 44, 2, 21, 10], "deflate", .bytesAfterEnd),
      ("deflate", [203, 72, 205, 201, 201, 7, 0, 10], "deflate", .bytesAfterEnd),
      ("br", brotli + [10], "br", .bytesAfterEnd), ("zstd", zstd + [10], "zstd", .bytesAfterEnd),
      ("zstd", zstd + Array("12345678".utf8), "zstd", .bytesAfterEnd),
      ("UTF-8", Array("hello".utf8), "", .unknownCoding("utf-8")),
      ("none", Array("hello".utf8), "", .unknownCoding("none")),
      ("gzip,aws-chunked", gzip, "gzip", .unknownCoding("aws-chunked")),
    ] as [(String, [UInt8], String, HTTP.Oddity)])
  func oddBodies(_ name: String, _ bytes: [UInt8], _ decodedFrom: String, _ oddity: HTTP.Oddity) async throws {
    guard ContentCoding(name)?.isAvailable ?? true else { return }
    let server = try LyingServer { $0.answer(bytes, ["Content-Encoding: \(name)"]) }
    try await withClient { client in
      let (body, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(body.text == "hello")
      #expect(response.decodedFrom.joined() == decodedFrom)
      #expect(response.oddities == [oddity])
    }
    try await withClient {
      $0.strict = true
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "cannotDecode")
    }
  }

  @Test(
    "trailing bytes are dropped, however divided", arguments: [gzip + gzip + [0, 1, 2], gzip + [0x1f, 0x8b, 1]])
  func cutRest(_ bytes: [UInt8]) throws {
    for size in 1...bytes.count {
      let decoder = Decoder([.gzip])
      var text: [UInt8] = []
      for start in stride(from: 0, to: bytes.count, by: size) {
        bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { decoder.feed($0) }
        while let bytes = try decoder.next() { text += bytes }
      }
      #expect(decoder.isComplete && decoder.hasRest)
      #expect(text == Array(String(repeating: "hello", count: bytes.count / Self.gzip.count).utf8))
    }
  }

  @Test("a gzip member that has produced output and is cut or broken is an error")
  func brokenMembers() async throws {
    for rest in [Array(Self.gzip.dropLast()), Self.gzip.dropLast(8) + [1, 2, 3, 4, 5, 0, 0, 0]] {
      let server = try LyingServer { $0.answer(Self.gzip + rest, ["Content-Encoding: gzip"]) }
      try await withClient { client in #expect(await end(client, HTTP.Request(server.url())) == "cannotDecode") }
    }
  }

  @Test(
    "a further gzip member that is truncated is an error, however little of it arrives",
    arguments: [("gzip", gzip, 2...24), ("zstd", zstd, 2...13)] as [(String, [UInt8], ClosedRange<Int>)])
  func cutMembers(_ name: String, _ member: [UInt8], _ counts: ClosedRange<Int>) throws {
    guard let coding = ContentCoding(name), coding.isAvailable else { return }
    for count in counts {
      for size in [1, 7, 100] {
        let decoder = Decoder([coding])
        let bytes = member + member.prefix(count)
        for start in stride(from: 0, to: bytes.count, by: size) {
          bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { decoder.feed($0) }
          while try decoder.next() != nil {}
        }
        #expect(!decoder.isComplete, "\(count) \(size)")
      }
    }
  }

  @Test(
    "an unrequested partial response is accepted if it is the whole, unless the client is strict",
    arguments: [
      ("Content-Range: bytes 0-4/5", true), ("Content-Range: bytes 0-4/6", false),
      ("Content-Range: bytes 1-5/6", false),
      ("Content-Range: bytes 0-4/*", false), ("Content-Range: bytes 0-5/6", false), ("A: b", false),
    ])
  func unrequestedPart(_ field: String, isWhole: Bool) async throws {
    let server = try LyingServer { $0.answer("hello", status: "206 Part", field) }
    try await withClient { client in
      guard isWhole else {
        return #expect(await end(client, HTTP.Request(server.url())) == "badServerResponse")
      }
      let (body, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(body.text == "hello")
      #expect(response.oddities == [.unrequestedPart])
    }
    try await withClient {
      $0.strict = true
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "badServerResponse")
    }
  }

  @Test("lines that are not header fields are skipped, in headers and trailers")
  func oddLines() async throws {
    let server = try LyingServer { exchange in
      exchange.send(
        "HTTP/1.1 200 OK\r\nA : b\r\nPHP Warning: no file\r\nTransfer-Encoding: chunked\r\n\r\n"
          + "5\r\nhello\r\n0\r\na trailer: x\r\n\r\n")
    }
    try await withClient { client in
      let (body, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(body.text == "hello")
      #expect(response.headers["A"] == "b")
      let expected: [HTTP.Oddity] = [
        .spaceBeforeColon("A"), .malformedLine("PHP Warning: no file"), .malformedLine("a trailer: x"),
      ]
      #expect(response.oddities == expected)
    }
    try await withClient {
      $0.strict = true
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "badServerResponse")
    }
  }

  @Test(
    "each decoding option has its effect",
    arguments: [
      // Requested by the client; by the program; with a range; and by the program with another encoding.
      (HTTP.Decoding.negotiated, [:], 200, "200 hello gzip"),
      (.negotiated, ["Accept-Encoding": "gzip"], 200, "200 25 bytes "),
      (.negotiated, ["Accept-Encoding": "identity"], 200, "200 25 bytes "),
      (.negotiated, ["Range": "bytes=0-24"], 206, "206 25 bytes "),
      (.negotiated, ["Range": "bytes=0-24"], 200, "200 25 bytes "),
      (.raw, [:], 200, "200 25 bytes "), (.raw, ["Accept-Encoding": "gzip"], 200, "200 25 bytes "),
      (.always, [:], 200, "200 hello gzip"), (.always, ["Accept-Encoding": "identity"], 200, "200 hello gzip"),
      (.always, ["Range": "bytes=0-24"], 206, "206 hello gzip"),
    ] as [(HTTP.Decoding, HTTP.Headers, Int, String)])
  func ways(_ decoding: HTTP.Decoding, _ headers: HTTP.Headers, _ status: Int, _ expected: String) async throws {
    let asked = Box("")
    let server = try LyingServer {
      asked.value = $0.field("Accept-Encoding") ?? "nothing"
      $0.answer(
        Self.gzip, status: "\(status) OK", ["Content-Encoding: x-gzip", "Content-Range: bytes 0-24/25"])
    }
    try await withClient { client in
      var request = HTTP.Request(server.url(), headers: headers)
      request.decoding = decoding
      #expect(await end(client, request) == expected.replacing("gzip", with: "x-gzip"))
    }
    let isAsked = decoding != .raw && headers.fields.isEmpty
    #expect(asked.value == headers["Accept-Encoding"] ?? (isAsked ? ContentCoding.field?.value : nil) ?? "nothing")
  }

  @Test("a file receives the bytes as sent, and the download can be resumed", arguments: [true, false])
  func files(namesCoding: Bool) async throws {
    let bytes = Self.gzip
    let server = try LyingServer { exchange in
      let fields = "ETag: \"v1\"\r\nContent-Encoding: x-gzip\r\n"
      guard exchange.field("Range") == "bytes=10-" else {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\(fields)\r\n")
        exchange.send(Array(bytes.prefix(10)))
        return exchange.end()
      }
      exchange.send(
        "HTTP/1.1 206 Part\r\nContent-Length: 15\r\nContent-Range: bytes 10-24/25\r\n"
          + "\(namesCoding ? fields : "")\r\n")
      exchange.send(Array(bytes.dropFirst(10)))
    }
    let scratch = Scratch()
    try await withClient { client in
      let path = scratch("a.tar.gz")
      await #expect(throws: HTTP.Error.self) { try await client.download(HTTP.Request(server.url()), to: path) }
      let response = try await client.download(HTTP.Request(server.url()), to: path)
      #expect(response.status == 206)
      #expect(response.decodedFrom.isEmpty)
      #expect(RunLoopTestPath.read(path) == bytes)
    }
  }

  @Test("a file is decoded on request, and so is an operation's file")
  func decodedFiles() async throws {
    let server = try LyingServer { $0.answer(Self.gzip, ["Content-Encoding: gzip"]) }
    let scratch = Scratch()
    try await withClient { client in
      var request = HTTP.Request(server.url())
      let raw = client.operation(request, output: .file(scratch("raw")), on: .main)
      _ = try await raw.value()
      #expect(RunLoopTestPath.read(scratch("raw")) == Self.gzip)
      request.decoding = .always
      _ = try await client.download(request, to: scratch("decoded"))
      #expect(RunLoopTestPath.read(scratch("decoded")) == Array("hello".utf8))
      let operation = client.operation(request, output: .file(scratch("operation")), on: .main)
      #expect(try await operation.value().1.decodedFrom == ["gzip"])
      #expect(RunLoopTestPath.read(scratch("operation")) == Array("hello".utf8))
    }
  }

  @Test("the encodings named by a Content-Encoding header")
  func names() {
    func isNamed(_ coding: String, _ value: String) -> Bool {
      ContentCoding.isNamed(coding, in: ["Accept-Encoding": value])
    }
    #expect(isNamed("gzip", "deflate, GZIP;q=0.5"))
    #expect(isNamed("x-gzip", "gzip"))
    #expect(isNamed("br", "*"))
    #expect(!isNamed("gzip", "identity"))
    #expect(!isNamed("gzip", "gzip;q=0, deflate"))
    #expect(!isNamed("gzip", "gzip; q=0.000"))
    #expect(!isNamed("br", ""))
  }
}
