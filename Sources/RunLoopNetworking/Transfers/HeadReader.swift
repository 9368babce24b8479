// SPDX-License-Identifier: Apache-2.0

/// The head of an answer, as it stands on the wire.
struct Head: Hashable, Sendable {
  var version: String
  var status: Int
  var reason: String
  var headers = HTTP.Headers()
  /// What the head says of the length; a body that is cut into chunks has none.
  var length: Int64?
  /// The content codings, in the order in which they were applied.
  var codings: [String] = []
}

/// Reads the lines of heads and trailers, and rejects what libcurl lets pass: heads that are cut, lengths that contradict
/// each other, codings that it does not know, an answer that changes the protocol unasked.
struct HeadReader {
  enum Step: Equatable {
    /// The line belongs to a head that goes on, to an interim answer, or to a trailer.
    case more
    /// The head is complete.
    case head(Head)
    case failed(HTTP.Error.Code, String)
  }

  private enum Phase {
    case status
    case fields(Head)
    case body
  }

  private var phase = Phase.status
  private var fields: [(name: String, value: String)] = []
  private var count = 0
  private let limit: Int

  /// - Parameter limit: How many bytes all heads and trailers of an answer may have together.
  init(limit: Int) { self.limit = limit }

  /// Whether the head of the answer is complete.
  var isComplete: Bool { if case .body = phase { true } else { false } }
  /// Whether the end of the connection is that of the body.
  private(set) var endsWithConnection = false
  /// Whether a line has come.
  var hasBegun: Bool { count > 0 }

  /// Takes a line with its end.
  mutating func take(_ line: UnsafeRawBufferPointer) -> Step {
    count += line.count
    guard count <= limit else { return .failed(.tooLarge, "the head has more than \(limit) bytes") }
    var text = line[...]
    if text.last == 10 { text = text.dropLast() }
    if text.last == 13 { text = text.dropLast() }
    guard !text.contains(where: { $0 == 0 || $0 == 13 }) else {
      return bad("a line of the head has a control character")
    }
    switch phase {
    case .status:
      // Empty lines before an answer are passed over.
      if text.isEmpty { return .more }
      guard let head = Self.readStatus(text) else { return bad("the first line is not a status of HTTP") }
      fields = []
      phase = .fields(head)
      return .more
    case .fields(let head):
      return text.isEmpty ? finish(head) : takeField(text)
    case .body:
      guard !text.isEmpty else { return .more }
      let colon = text.firstIndex(of: 58) ?? text.startIndex
      return HTTP.Headers.isToken(text[text.startIndex..<colon]) ? .more : bad("a line of the trailer is not a field")
    }
  }

  private func bad(_ detail: String) -> Step { .failed(.badServerResponse, detail) }

  private mutating func takeField(_ line: Slice<UnsafeRawBufferPointer>) -> Step {
    if line.first == 32 || line.first == 9 {
      guard let last = fields.last else { return bad("the first field of the head continues another") }
      guard !["content-length", "transfer-encoding"].contains(last.name.lowercased()) else {
        return bad("\(last.name) goes on in a second line")
      }
      fields[fields.count - 1].value += " " + Self.decode(trimmed(line))
      return .more
    }
    guard let colon = line.firstIndex(of: 58), HTTP.Headers.isToken(line[line.startIndex..<colon]) else {
      return bad("a line of the head is not a field")
    }
    let name = String(decoding: line[line.startIndex..<colon], as: UTF8.self)
    fields.append((name, Self.decode(trimmed(line[(colon + 1)...]))))
    return .more
  }

  private mutating func finish(_ begun: Head) -> Step {
    var head = begun
    head.headers = HTTP.Headers(fields.map { .init($0.name, $0.value) })
    if head.status == 101 { return bad("the answer changes the protocol, which was not asked for") }
    if head.status < 200 {
      phase = .status
      return .more
    }
    let codings = head.headers.list(of: "Transfer-Encoding").map { $0.lowercased() }
    guard codings.isEmpty || codings == ["chunked"] else {
      return bad("the transfer coding \(codings.joined(separator: ", ")) is not known")
    }
    for text in head.headers.values(of: "Content-Length").flatMap({
      $0.split(separator: ",", omittingEmptySubsequences: false)
    }) {
      let digits = trimmed(text)
      guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let length = Int64(digits) else {
        return bad("Content-Length is not a number that can be counted")
      }
      guard head.length == nil || head.length == length else { return bad("the answer has two lengths") }
      head.length = length
    }
    guard codings.isEmpty || head.length == nil else { return bad("the answer has a length and is cut into chunks") }
    head.codings = head.headers.list(of: "Content-Encoding").map { $0.lowercased() }.filter { $0 != "identity" }
    phase = .body
    endsWithConnection =
      codings.isEmpty && head.length == nil && head.status != 204 && head.status != 304 && head.version != "2"
    return .head(head)
  }

  /// "HTTP/1.1 200 OK", with or without a reason.
  private static func readStatus(_ line: Slice<UnsafeRawBufferPointer>) -> Head? {
    guard line.starts(with: "HTTP/".utf8) else { return nil }
    let rest = line.dropFirst(5)
    guard let end = rest.firstIndex(of: 32), let version = version(rest[..<end]) else { return nil }
    let digits = rest[(end + 1)...].prefix { $0 != 32 }
    guard digits.count == 3, digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
    let status = digits.reduce(0) { $0 * 10 + Int($1 - 48) }
    guard status >= 100 else { return nil }
    return Head(version: version, status: status, reason: decode(trimmed(rest[digits.endIndex...])))
  }

  private static func version(_ text: Slice<UnsafeRawBufferPointer>) -> String? {
    for known in ["1.1", "2", "1.0", "3"] where text.elementsEqual(known.utf8) { return known }
    return text.elementsEqual("2.0".utf8) ? "2" : nil
  }

  /// UTF-8, and where it is not, Latin-1.
  private static func decode(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    if let text = String(validating: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self) { return text }
    var text = ""
    for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
    return text
  }
}
