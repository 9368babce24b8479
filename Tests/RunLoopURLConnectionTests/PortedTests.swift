// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

@Suite("Behavior that programs ported from AFNetworking rely on")
struct PortedTests {
  /// Runs an operation to its end.
  @discardableResult
  private func run<Operation: AFURLConnectionOperation>(_ operation: Operation) async -> Operation {
    operation.start()
    await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
    return operation
  }

  private func operation(
    _ server: LyingServer, _ serializer: AFHTTPResponseSerializer = AFHTTPResponseSerializer()
  ) async -> AFHTTPRequestOperation {
    let operation = AFHTTPRequestOperation(request: server.request())
    operation.responseSerializer = serializer
    return await run(operation)
  }

  @Test("the response object is available beside a status error, whichever property is read first")
  func objectBesideError() async throws {
    let server = try LyingServer {
      $0.answer("{\"error\":\"x\"}", status: "500 Oops", "Content-Type: application/json")
    }
    for serializer in [
      AFJSONResponseSerializer(), AFCompoundResponseSerializer(compoundWith: [AFJSONResponseSerializer()]),
    ] {
      let json = await operation(server, serializer)
      #expect(json.responseObject as? [String: String] == ["error": "x"])
      #expect((json.error as? NSError)?.code == URLError.badServerResponse.rawValue)
    }
    let plain = await operation(server)
    #expect(plain.responseObject as? Data == Data("{\"error\":\"x\"}".utf8))
    #expect((plain.error as? NSError)?.code == URLError.badServerResponse.rawValue)
  }

  @Test(
    "there is no response object with an error about the type or the body",
    arguments: [
      ("text/html", "{}", 200), ("text/html", "{}", 500), ("application/json", "{", 200),
      ("application/json", "{", 500),
    ])
  func noObject(_ type: String, _ body: String, _ status: Int) async throws {
    let server = try LyingServer { $0.answer(body, status: "\(status) S", "Content-Type: \(type)") }
    let operation = await operation(server, AFJSONResponseSerializer())
    #expect(operation.responseObject == nil)
    #expect(operation.error != nil)
  }

  @Test(
    "texts are decoded in the charsets that the system supports",
    arguments: [
      ("gbk", [0xc4, 0xe3, 0xba, 0xc3], "你好"), ("GB2312", [0xc4, 0xe3, 0xba, 0xc3], "你好"),
      ("gb18030", [0x81, 0x30, 0x81, 0x30], "\u{80}"), ("Shift_JIS", [0x93, 0xfa, 0x96, 0x7b], "日本"),
      ("euc-jp", [0xc6, 0xfc, 0xcb, 0xdc], "日本"),
      ("iso-2022-jp", [0x1b, 0x24, 0x42, 0x46, 0x7c, 0x1b, 0x28, 0x42], "日"),
      ("big5", [0xa7, 0x41], "你"), ("euc-kr", [0xc7, 0xd1], "한"), ("koi8-r", [0xc4, 0xc1], "да"),
      ("windows-1251", [0xe4, 0xe0], "да"), ("iso-8859-15", [0xa4], "€"), ("latin1", [0xe9], "é"),
      ("utf-8", [0xc3, 0xa9], "é"), ("no-such-charset", [0xc3, 0xa9], "é"), ("utf-8//IGNORE", [0xc3, 0xa9], "é"),
      ("gbk", [0xff, 0xff], nil), ("gbk", [], ""),
    ] as [(String, [UInt8], String?)])
  func charsets(_ name: String, _ bytes: [UInt8], _ text: String?) async throws {
    let server = try LyingServer { $0.answer(bytes, ["Content-Type: text/plain; charset=\(name)"]) }
    #expect(await operation(server).responseString == text)
  }

  @Test("a subclass's string encoding is used")
  func ownEncoding() async throws {
    final class Latin: AFHTTPRequestOperation, @unchecked Sendable {
      override var responseStringEncoding: String.Encoding { .isoLatin1 }
    }
    let server = try LyingServer { $0.answer([0xe9], ["Content-Type: text/plain; charset=gbk"]) }
    #expect(await run(Latin(request: server.request())).responseString == "é")
  }

  @Test(
    "JSON is decoded in the response's charset",
    arguments: [
      ("iso-8859-1", [0xe9], "é"), ("Shift_JIS", [0x93, 0xfa], "日"), ("utf-8", [0xc3, 0xa9], "é"),
      ("gbk", [0xff, 0xff], nil),
    ] as [(String, [UInt8], String?)])
  func json(_ name: String, _ bytes: [UInt8], _ text: String?) async throws {
    let body = Array("{\"a\":\"".utf8) + bytes + Array("\"}".utf8)
    let server = try LyingServer { $0.answer(body, ["Content-Type: application/json; charset=\(name)"]) }
    let operation = await operation(server, AFJSONResponseSerializer())
    #expect((operation.responseObject as? [String: String])?["a"] == text)
    #expect((operation.error == nil) == (text != nil))
  }

  @Test("a copy has the program's settings and class, and can be run")
  func copies() async throws {
    final class Own: AFHTTPRequestOperation, @unchecked Sendable {}
    let server = try LyingServer { $0.answer("[1]", "Content-Type: application/json") }
    let operation = Own(request: server.request())
    let progress = Counter()
    operation.setDownloadProgressBlock { _, _, _ in progress.add() }
    operation.responseSerializer = AFJSONResponseSerializer()
    operation.securityPolicy.trust.pins = ["pin"]
    operation.shouldUseCredentialStorage = false
    operation.runLoopModes = [.default]
    await run(operation)
    let copy = try #require(operation.copy() as? Own)
    #expect(copy !== operation && !copy.isFinished && copy.responseData == nil)
    #expect(copy.securityPolicy.trust.pins == ["pin"] && !copy.shouldUseCredentialStorage)
    #expect(copy.runLoopModes == [.default])
    await run(copy)
    #expect(copy.responseObject as? [Int] == [1])
    #expect(progress.value == 2)
    #expect(server.requests.value.count == 2)
  }

  private func form(_ block: (any AFMultipartFormData) throws -> Void, to server: LyingServer) throws -> URLRequest {
    try AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: server.url(), parameters: nil, constructingBodyWith: block)
  }

  @Test("a part may come from a stream, which is sent once")
  func streams() async throws {
    let bodies = Box<[String]>([])
    let server = try LyingServer { exchange in
      bodies.update { $0.append(String(decoding: exchange.body, as: UTF8.self)) }
      if exchange.path == "/" {
        exchange.answer("", status: "307 There", "Location: /there")
      } else {
        exchange.answer("")
      }
    }
    func add(_ form: any AFMultipartFormData) {
      form.appendPart(
        withInputStream: InputStream(data: Data("stream and more".utf8)), name: "a", fileName: "f", length: 6,
        mimeType: "text/plain")
      form.appendPart(withInputStream: nil, name: "b", fileName: "g", length: 0, mimeType: "text/plain")
    }
    let operation = await run(AFHTTPRequestOperation(request: try form(add, to: server)))
    #expect(bodies.value.count == 1)
    #expect(bodies.value.first?.contains("filename=\"f\"\r\nContent-Type: text/plain\r\n\r\nstream\r\n--") == true)
    #expect((operation.error as? URLError)?.code == .requestBodyStreamExhausted)
  }

  @Test("a stream that is shorter than announced ends the request")
  func shortStreams() async throws {
    let server = try LyingServer { $0.answer("") }
    let request = try form(
      {
        $0.appendPart(
          withInputStream: InputStream(data: Data("abc".utf8)), name: "a", fileName: "f", length: 6, mimeType: "t")
      }, to: server)
    #expect(await run(AFHTTPRequestOperation(request: request)).error is URLError)
    #expect(server.requests.value.isEmpty)
  }

  @Test("a throttled form is read in packets, and is complete")
  func throttle() throws {
    let form = MultipartForm(.utf8)
    form.appendPart(withForm: Data("value".utf8), name: "a")
    let whole = form.stream()
    form.throttleBandwidth(withPacketSize: 3, delay: -.infinity)
    let slow = form.stream()
    func read(_ stream: AFMultipartBodyStream) -> [[UInt8]] {
      stream.open()
      var (chunks, buffer): ([[UInt8]], [UInt8]) = ([], [UInt8](repeating: 0, count: 1000))
      while case let count = stream.read(&buffer, maxLength: 1000), count > 0 { chunks.append(Array(buffer[..<count])) }
      return chunks
    }
    let packets = read(slow)
    #expect(packets.dropLast().allSatisfy { $0.count == 3 })
    #expect(Array(packets.joined()) == Array(read(whole).joined()))
    #expect(Array(read(slow.fresh()).joined()) == Array(packets.joined()))
  }
}
