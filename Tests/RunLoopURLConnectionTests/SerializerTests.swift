// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

@Suite("AFNetworking's serializers")
struct SerializerTests {
  @Test("parameters are encoded as AFNetworking encodes them")
  func pairs() {
    let parameters: [String: Any] = [
      "b": ["x": 1, "a": [true, "&"]] as [String: Any], "a": "ä ö", "c": NSNull(), "d": Set([2, 1]),
      "e/?": ":#[]@!$'()*+,;=",
    ]
    #expect(
      QueryPair.text(of: parameters)
        == "a=%C3%A4%20%C3%B6&b%5Ba%5D%5B%5D=1&b%5Ba%5D%5B%5D=%26&b%5Bx%5D=1&c=&d=1&d=2"
        + "&e/?=%3A%23%5B%5D%40%21%24%27%28%29%2A%2B%2C%3B%3D")
    #expect(QueryPair.text(of: [String: Any]()) == "")
    // As NSNumber formats them.
    let numbers: [Any] = [
      true, false, 1, -7, UInt8(255), UInt64.max, Int64.min, 1.0, 0.1, -2.5, 1e20, 3.141592653589793, Float(0.1),
      Float(2),
      NSNumber(value: true), NSNumber(value: 5), NSNumber(value: 1.0), NSNumber(value: 0.5),
    ]
    #expect(
      QueryPair.pairs(of: ["n": numbers]).map(\.value) == [
        "1", "0", "1", "-7", "255", "18446744073709551615", "-9223372036854775808", "1", "0.1", "-2.5", "1e+20",
        "3.141592653589793", "0.1", "2", "1", "5", "1", "0.5",
      ])
    #expect(QueryPair.text(of: ["s": Set([2.0, 1.5])]) == "s=1.5&s=2")
  }

  @Test("a value that is optional is written without that, and data as its bytes")
  func wrappedValues() throws {
    let values: [String: Any?] = ["a": "x", "b": nil, "c": ["d": Optional(1)], "e": Data("é".utf8)]
    #expect(QueryPair.text(of: values) == "a=x&b=&c%5Bd%5D=1&e=%C3%A9")
    let bytes = Data([0xff, 0, 0x80])
    let request = try AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "http://host/", parameters: ["key": bytes]
    ) { _ in }
    let stream = try #require(request.httpBodyStream)
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 1000)
    let body = Data(buffer[..<stream.read(&buffer, maxLength: 1000)])
    #expect(body.range(of: Data("name=\"key\"\r\n\r\n".utf8) + bytes + Data("\r\n".utf8)) != nil)
  }

  @Test("a header is set, read and removed in any case")
  func headerNames() throws {
    let serializer = AFHTTPRequestSerializer()
    serializer.setValue("mine", forHTTPHeaderField: "user-agent")
    serializer.setAuthorizationHeaderFieldWithUsername("user", password: "pass")
    serializer.setValue("token", forHTTPHeaderField: "AUTHORIZATION")
    #expect(serializer.value(forHTTPHeaderField: "User-Agent") == "mine")
    #expect(serializer.httpRequestHeaders.keys.filter { $0.lowercased() == "user-agent" } == ["user-agent"])
    serializer.clearAuthorizationHeader()
    let request = try serializer.request(withMethod: "GET", urlString: "http://host/", parameters: nil)
    #expect(request.value(forHTTPHeaderField: "Authorization") == nil)
    #expect(request.value(forHTTPHeaderField: "User-Agent") == "mine")
  }

  @Test("an empty path means the manager's own URL")
  func emptyPath() {
    let manager = AFHTTPRequestOperationManager(baseURL: URL(string: "http://host/api"))
    manager.operationQueue.isSuspended = true
    let operation = manager.get("", parameters: ["a": 1], success: nil, failure: nil)
    #expect(operation?.request.url?.absoluteString == "http://host/api/?a=1")
    operation?.cancel()
    manager.operationQueue.isSuspended = false
    manager.operationQueue.waitUntilAllOperationsAreFinished()
  }

  @Test("acceptable content types are set on an operation's serializer or its manager's")
  func acceptance() async throws {
    let server = try LyingServer { $0.answer("hello", "Content-Type: text/plain") }
    let operation = AFHTTPRequestOperation(request: server.request())
    operation.responseSerializer.acceptableContentTypes = ["text/html"]
    operation.start()
    await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
    #expect((operation.error as? NSError)?.code == URLError.cannotDecodeContentData.rawValue)
    let manager = AFHTTPRequestOperationManager()
    manager.responseSerializer.acceptableContentTypes?.insert("text/plain")
    let made = manager.httpRequestOperation(with: server.request(), success: nil, failure: nil)
    #expect(made.responseSerializer === manager.responseSerializer)
    #expect(made.responseSerializer.acceptableContentTypes?.contains("text/plain") == true)
  }

  @Test("parameters of GET are in the URL, those of POST in the body")
  func forms() throws {
    let serializer = AFHTTPRequestSerializer()
    let get = try serializer.request(
      withMethod: "GET", urlString: "http://host/path?x=1#part", parameters: ["key": "a b"])
    #expect(get.url?.absoluteString == "http://host/path?x=1&key=a%20b#part" && get.httpBody == nil)
    let plain = try serializer.request(withMethod: "DELETE", urlString: "http://host/", parameters: ["key": 1])
    #expect(plain.url?.absoluteString == "http://host/?key=1")
    let post = try serializer.request(withMethod: "POST", urlString: "http://host/", parameters: ["key": "a b"])
    #expect(post.httpBody == Data("key=a%20b".utf8))
    #expect(post.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded")
    #expect(throws: URLError.self) {
      try serializer.request(withMethod: "GET", urlString: "no address", parameters: nil)
    }
    serializer.setAuthorizationHeaderFieldWithUsername("user", password: "pass")
    let authorized = try serializer.request(withMethod: "GET", urlString: "http://host/", parameters: nil)
    #expect(authorized.value(forHTTPHeaderField: "Authorization") == "Basic dXNlcjpwYXNz")
    serializer.setQueryStringSerializationWithBlock { _, parameters in "own=\(parameters)" }
    #expect(
      try serializer.request(withMethod: "PUT", urlString: "http://host/", parameters: 7).httpBody == Data("own=7".utf8)
    )
  }

  @Test("JSON and property lists are bodies; other objects are an error and no trap")
  func documents() throws {
    let json = AFJSONRequestSerializer()
    let request = try json.request(withMethod: "POST", urlString: "http://host/", parameters: ["key": [1]])
    #expect(request.httpBody == Data("{\"key\":[1]}".utf8))
    #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/json")
    #expect(
      try json.request(withMethod: "GET", urlString: "http://host/", parameters: ["key": 1]).url?.query == "key=1")
    #expect(throws: CocoaError.self) {
      try json.request(withMethod: "POST", urlString: "http://host/", parameters: ["date": Date()])
    }
    let list = AFPropertyListRequestSerializer()
    let written = try list.request(withMethod: "POST", urlString: "http://host/", parameters: ["key": [1]])
    let read = try PropertyListSerialization.propertyList(from: written.httpBody ?? Data(), format: nil)
    #expect(read as? [String: [Int]] == ["key": [1]])
    #expect(throws: CocoaError.self) {
      try list.request(withMethod: "POST", urlString: "http://host/", parameters: ["null": NSNull()])
    }
  }

  private func response(_ status: Int = 200, _ type: String) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://host/"))
    let response = HTTPURLResponse(
      url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": type])
    return try #require(response)
  }

  @Test("responses are validated and parsed")
  func answers() throws {
    let json = AFJSONResponseSerializer()
    let good = try response(200, "application/json; charset=utf-8")
    #expect(try json.responseObject(for: good, data: Data("[1, 2]".utf8)) as? [Int] == [1, 2])
    #expect(try json.responseObject(for: good, data: Data()) == nil)
    let spaced = try response(200, "Application/JSON ; charset=utf-8")
    #expect(try json.responseObject(for: spaced, data: Data("[1, 2]".utf8)) as? [Int] == [1, 2])
    #expect(try json.responseObject(for: good, data: Data(" ".utf8)) == nil)
    json.removesKeysWithNullValues = true
    let object = try json.responseObject(for: good, data: Data("{\"a\": null, \"b\": [{\"c\": null}]}".utf8))
    #expect((object as? [String: Any])?.keys.sorted() == ["b"])
    #expect(code { try json.responseObject(for: good, data: Data("{".utf8)) } == -1016)
    #expect(
      code { try json.responseObject(for: try response(500, "application/json"), data: Data("{}".utf8)) } == -1011)
    #expect(code { try json.responseObject(for: try response(200, "text/html"), data: Data("{}".utf8)) } == -1016)
    // An empty body has no wrong type.
    #expect(try json.responseObject(for: try response(204, "text/html"), data: Data()) == nil)
    let list = AFPropertyListResponseSerializer()
    let bytes = try PropertyListSerialization.data(fromPropertyList: ["key": 1], format: .binary, options: 0)
    #expect(
      try list.responseObject(for: try response(200, "application/x-plist"), data: bytes) as? [String: Int] == [
        "key": 1
      ])
    let compound = AFCompoundResponseSerializer(compoundWith: [AFJSONResponseSerializer(), list])
    #expect(
      try compound.responseObject(for: try response(200, "application/x-plist"), data: bytes) as? [String: Int] == [
        "key": 1
      ])
    #expect(
      try compound.responseObject(for: try response(200, "text/plain"), data: Data("x".utf8)) as? Data == Data("x".utf8)
    )
    let all = AFHTTPResponseSerializer()
    all.acceptableStatusCodes = nil
    #expect(
      try all.responseObject(for: try response(500, "text/html"), data: Data("x".utf8)) as? Data == Data("x".utf8))
  }

  /// A serializer that throws its own error, which is not one of Foundation's.
  private final class Rejecting: AFHTTPResponseSerializer, @unchecked Sendable {
    // Sendable: it has no variables.
    struct Refusal: Error, Equatable { var reason: String }

    override func validateResponse(_ response: HTTPURLResponse?, data: Data?) throws { throw Refusal(reason: "own") }
  }

  @Test("an error thrown by a program's validation is passed on unchanged, with the response object")
  func ownErrors() async throws {
    let refusal = Rejecting.Refusal(reason: "own")
    let plain = try response(200, "text/plain")
    #expect(throws: refusal) { _ = try Rejecting().responseObject(for: plain, data: Data("hello".utf8)) }
    let compound = AFCompoundResponseSerializer(compoundWith: [AFJSONResponseSerializer(), Rejecting()])
    #expect(throws: refusal) { _ = try compound.responseObject(for: plain, data: Data("hello".utf8)) }
    let server = try LyingServer { $0.answer("hello") }
    for serializer in [Rejecting(), compound] as [AFHTTPResponseSerializer] {
      let operation = AFHTTPRequestOperation(request: server.request())
      operation.responseSerializer = serializer
      operation.start()
      await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
      #expect((operation.error as? Rejecting.Refusal) == refusal)
      #expect(operation.responseObject as? Data == Data("hello".utf8))
    }
  }

  private func code(_ body: () throws -> Any?) -> Int? {
    do {
      _ = try body()
      return nil
    } catch {
      let error = error as NSError
      #expect(error.domain == AFURLResponseSerializationErrorDomain)
      #expect(error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] is HTTPURLResponse)
      return error.code
    }
  }

  @Test("a multipart form is sent as announced, with its files read during the upload")
  func multipart() async throws {
    let path = "/tmp/RunLoopURLConnectionTests.\(UInt32.random(in: 0 ... .max)).txt"
    let file = URL(fileURLWithPath: path)
    try Data(pattern(100_000)).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let bodies = Box<[[UInt8]]>([])
    let server = try LyingServer { exchange in
      bodies.update { $0.append(exchange.body) }
      if exchange.path == "/moved" {
        exchange.answer("", status: "307 Elsewhere", "Location: /there")
      } else {
        exchange.answer("\(exchange.body.count) \(exchange.field("Content-Length") ?? "")")
      }
    }
    let serializer = AFHTTPRequestSerializer()
    let request = try serializer.multipartFormRequest(
      withMethod: "POST", urlString: server.url("/moved"), parameters: ["key": "value"]
    ) { form in
      form.appendPart(withFileData: Data("data".utf8), name: "a\"b", fileName: "c\r\nd", mimeType: "text/plain")
      try form.appendPart(withFileURL: file, name: "file")
      #expect(throws: (any Error).self) {
        try form.appendPart(withFileURL: URL(fileURLWithPath: "/nonexistent"), name: "none")
      }
    }
    let boundary = try #require(request.value(forHTTPHeaderField: "Content-Type")?.split(separator: "=").last)
    let operation = AFHTTPRequestOperation(request: request)
    operation.start()
    await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
    let start = """
      --\(boundary)\r\nContent-Disposition: form-data; name="key"\r\n\r\nvalue\r\n\
      --\(boundary)\r\nContent-Disposition: form-data; name="a%22b"; filename="c%0D%0Ad"\r\n\
      Content-Type: text/plain\r\n\r\ndata\r\n\
      --\(boundary)\r\nContent-Disposition: form-data; name="file"; filename="\(file.lastPathComponent)"\r\n\
      Content-Type: text/plain\r\n\r\n
      """
    let whole = Array(start.utf8) + pattern(100_000) + Array("\r\n--\(boundary)--\r\n".utf8)
    // The redirect requires the body again.
    #expect(bodies.value == [whole, whole])
    #expect(operation.responseString == "\(whole.count) \(whole.count)")
  }

  @Test("a part whose length is negative or too large fails the form", arguments: [-1, .max, .min] as [Int64])
  func impossibleLengths(_ length: Int64) throws {
    let request = try AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "http://host/", parameters: nil
    ) { form in
      let stream = InputStream(data: Data("hello".utf8))
      form.appendPart(withInputStream: stream, name: "a", fileName: "b", length: length, mimeType: "text/plain")
    }
    #expect(request.value(forHTTPHeaderField: "Content-Length") == nil)
    let stream = try #require(request.httpBodyStream)
    stream.open()
    var bytes = [UInt8](repeating: 0, count: 3)
    #expect(stream.read(&bytes, maxLength: 3) == -1)
    #expect(stream.streamStatus == .error && stream.streamError != nil)
  }

  @Test("a file that has become shorter is an error, and no short form")
  func shortFile() throws {
    let path = "/tmp/RunLoopURLConnectionTests.\(UInt32.random(in: 0 ... .max)).txt"
    let file = URL(fileURLWithPath: path)
    try Data("hello".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let stream = AFMultipartBodyStream([.data(Data("ab".utf8)), .file(file, length: 6), .data(Data())])
    var bytes = [UInt8](repeating: 0, count: 3)
    #expect(stream.read(&bytes, maxLength: 3) == 0)
    stream.open()
    #expect(stream.read(&bytes, maxLength: 3) == 3)
    #expect(stream.read(&bytes, maxLength: 3) == 3)
    #expect(stream.read(&bytes, maxLength: 3) == -1)
    #expect(stream.streamStatus == .error)
    let again = stream.fresh()
    again.open()
    #expect(again.read(&bytes, maxLength: 3) == 3 && String(decoding: bytes, as: UTF8.self) == "abh")
  }
}
