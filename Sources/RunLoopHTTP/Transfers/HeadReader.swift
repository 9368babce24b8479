// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

struct Head: Hashable, Sendable {
  var version: String
  var status: HTTP.Status
  var headers = HTTP.Headers()
  /// The length according to the headers; nil for a chunked body.
  var length: Int64?
  /// Whether the body ends with the connection.
  var endsWithConnection = false
  /// The content codings, in the order they were applied.
  var codings: [String] = []
}

/// Parses the lines of headers and trailers, and rejects what libcurl tolerates: truncated headers, contradictory
/// lengths, unknown transfer codings, and an unrequested protocol upgrade.
struct HeadReader {
  enum Step: Equatable {
    /// The line belongs to incomplete headers or to trailers.
    case more
    /// The headers are complete.
    case head(Head)
    /// The headers of an interim response are complete.
    case interim
    case failed(HTTP.Error.Code, String)
  }

  private enum Phase { case status, fields, body }

  private var phase = Phase.status
  // The headers being parsed.
  private var line = StatusLine(version: "", status: 0)
  private var fields = WireFields()
  private var count = 0
  private let limit: Int
  private let speaksHTTP2: Bool
  private let isStrict: Bool
  private(set) var oddities: [HTTP.Oddity] = []
  private var hasPassedOver = false

  private struct StatusLine {
    var version: String
    var status: HTTP.Status
  }

  /// - Parameters:
  ///   - limit: The maximum total size of a response's headers and trailers in bytes.
  ///   - speaksHTTP2: Whether HTTP/2 was offered. If not, a response that claims to be HTTP/2 is rejected.
  ///   - isStrict: Whether lines that are not valid fields are errors.
  init(limit: Int, speaksHTTP2: Bool = true, isStrict: Bool = false) {
    self.limit = limit
    self.speaksHTTP2 = speaksHTTP2
    self.isStrict = isStrict
  }

  var isComplete: Bool { phase == .body }
  /// Whether a status line has been parsed, but not the end of its headers.
  var isWithinHead: Bool { phase == .fields }
  /// Whether the body ends with the connection.
  private(set) var endsWithConnection = false
  private(set) var isChunked = false
  var byteCount: Int { count }
  var hasBegun: Bool { count > 0 }

  /// Parses a line, including its line ending.
  mutating func take(_ line: UnsafeRawBufferPointer) -> Step {
    count += line.count
    guard count <= limit else { return .failed(.tooLarge, "the head has more than \(limit) bytes") }
    var length = line.count
    if length > 0, line[length - 1] == 10 { length -= 1 }
    if length > 0, line[length - 1] == 13 { length -= 1 }
    let text = UnsafeRawBufferPointer(rebasing: line[..<length])
    guard text.firstOffset(of: 0) == nil, text.firstOffset(of: 13) == nil else {
      return bad("a line of the head has a control character")
    }
    switch phase {
    case .status:
      // Empty lines before a response are skipped.
      if text.isEmpty { return .more }
      guard let begun = Self.readStatus(text), begun.version != "2" || speaksHTTP2 else {
        return bad("the first line is not a status of HTTP")
      }
      self.line = begun
      fields = WireFields()
      hasPassedOver = false
      phase = .fields
      return .more
    case .fields: return text.isEmpty ? finish() : takeField(text)
    case .body: return text.isEmpty ? .more : takeTrailer(text)
    }
  }

  private mutating func takeTrailer(_ line: UnsafeRawBufferPointer) -> Step {
    let name = UnsafeRawBufferPointer(rebasing: line[..<(line.firstOffset(of: 58) ?? 0)])
    guard HTTP.Headers.isToken(name) else { return passOver(line, "a line of the trailer is not a field") }
    let text = trimmed(line)
    let value = trimmed(UnsafeRawBufferPointer(rebasing: text[(name.count + 1)...]))
    return fields.append(text, nameCount: name.count, valueCount: value.count)
      ? .more : .failed(.tooLarge, "the trailer has more bytes than can be counted")
  }

  /// The trailers; nil if there are none.
  var trailers: HTTP.Headers? { phase == .body && !fields.isEmpty ? HTTP.Headers(fields) : nil }
  /// The interim response that has just been completed.
  var interim: Head { Head(version: line.version, status: line.status, headers: HTTP.Headers(fields)) }

  /// Skips a line that is not a valid field.
  private mutating func passOver(_ line: UnsafeRawBufferPointer, _ detail: String) -> Step {
    guard !isStrict else { return bad(detail) }
    hasPassedOver = true
    note(HTTP.Oddity(line: line))
    return .more
  }

  private mutating func note(_ oddity: HTTP.Oddity) {
    if oddities.count < HTTP.Oddity.limit { oddities.append(oddity) }
  }

  private func bad(_ detail: String) -> Step { .failed(.badServerResponse, detail) }

  private mutating func takeField(_ line: UnsafeRawBufferPointer) -> Step {
    let isKept: Bool
    if line[0] == 32 || line[0] == 9 {
      if hasPassedOver { return .more }
      guard !fields.isEmpty else { return bad("the first field of the head continues another") }
      guard !fields.lastIsNamed("content-length", "transfer-encoding") else {
        return bad("\(fields.lastName) goes on in a second line")
      }
      isKept = fields.continueLast(with: trimmed(line))
    } else {
      let detail = "a line of the head is not a field"
      guard let colon = line.firstOffset(of: 58) else { return passOver(line, detail) }
      let name = trimmed(UnsafeRawBufferPointer(rebasing: line[..<colon]))
      // libcurl or an intermediary may interpret such a line as a length although it is not treated as one here.
      guard name.count == colon || !Self.isAboutLength(name) else { return bad(detail) }
      guard HTTP.Headers.isToken(name) else {
        return Self.isAboutLength(name) ? bad(detail) : passOver(line, detail)
      }
      if name.count < colon {
        guard !isStrict else { return bad(detail) }
        note(.spaceBeforeColon(String(decoding: name, as: UTF8.self)))
      }
      hasPassedOver = false
      // A token has no surrounding whitespace.
      let text = trimmed(line)
      let value = trimmed(UnsafeRawBufferPointer(rebasing: text[(colon + 1)...]))
      isKept = fields.append(text, nameCount: name.count, valueCount: value.count)
    }
    return isKept ? .more : .failed(.tooLarge, "the head has more bytes than can be counted")
  }

  /// Whether a name, ignoring invalid characters, is one of the headers that determine the length of the body.
  private static func isAboutLength(_ name: UnsafeRawBufferPointer) -> Bool {
    let letters = name.filter { HTTP.Headers.isToken(CollectionOfOne($0)) }
    let text = String(decoding: letters, as: UTF8.self)
    return ["Content-Length", "Transfer-Encoding"].contains { HTTP.Headers.isSame($0, text) }
  }

  private mutating func finish() -> Step {
    let status = line.status
    if status == 101 { return bad("the answer changes the protocol, which was not asked for") }
    if status < 200 {
      phase = .status
      return .interim
    }
    var head = Head(version: line.version, status: status, headers: HTTP.Headers(fields))
    let named = head.headers.list(of: "Transfer-Encoding").map { $0.lowercased() }
    // RFC 2616 named the absence of a coding.
    let codings = isStrict ? named : named.filter { $0 != "identity" }
    guard codings.isEmpty || codings == ["chunked"] else {
      return bad("the transfer coding \(codings.joined(separator: ", ")) is not known")
    }
    var fault: String?
    fields.forEachValue(of: "Content-Length") { value in
      fault = Self.readLengths(value, &head.length)
      return fault == nil
    }
    if let fault { return bad(fault) }
    // With any coding, libcurl ignores the length and reads until the connection ends.
    guard named.isEmpty || head.length == nil else { return bad("the answer has a length and a transfer coding") }
    head.codings = head.headers.codings
    phase = .body
    endsWithConnection = codings.isEmpty && head.length == nil && status != 204 && status != 304 && head.version != "2"
    head.endsWithConnection = endsWithConnection
    isChunked = !codings.isEmpty && head.version != "2"
    fields = WireFields()
    return .head(head)
  }

  /// Parses a length, or a list of equal lengths, and returns a description of any error.
  private static func readLengths(_ list: UnsafeRawBufferPointer, _ known: inout Int64?) -> String? {
    var rest = list
    while true {
      let comma = rest.firstOffset(of: 44)
      let digits = trimmed(UnsafeRawBufferPointer(rebasing: rest[..<(comma ?? rest.count)]))
      guard let length = number(digits) else { return "Content-Length is not a number that can be counted" }
      guard known == nil || known == length else { return "the answer has two lengths" }
      known = length
      guard let comma else { return nil }
      rest = UnsafeRawBufferPointer(rebasing: rest[(comma + 1)...])
    }
  }

  private static func number(_ digits: UnsafeRawBufferPointer) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var number: Int64 = 0
    for digit in digits {
      guard (48...57).contains(digit) else { return nil }
      let (shifted, hasOverflown) = number.multipliedReportingOverflow(by: 10)
      let (sum, isTooLarge) = shifted.addingReportingOverflow(Int64(digit - 48))
      if hasOverflown || isTooLarge { return nil }
      number = sum
    }
    return number
  }

  /// Parses a status line such as "HTTP/1.1 200 OK", in which the reason phrase is optional.
  private static func readStatus(_ line: UnsafeRawBufferPointer) -> StatusLine? {
    guard line.starts(with: "HTTP/"), let end = line.firstOffset(of: 32) else { return nil }
    guard let version = version(UnsafeRawBufferPointer(rebasing: line[5..<end])) else { return nil }
    let digits = end + 1
    guard line.count >= digits + 3, line.count == digits + 3 || line[digits + 3] == 32 else { return nil }
    var status = 0
    for digit in line[digits..<digits + 3] {
      guard (48...57).contains(digit) else { return nil }
      status = status * 10 + Int(digit - 48)
    }
    guard status >= 100 else { return nil }
    let reason = WireFields.decode(trimmed(UnsafeRawBufferPointer(rebasing: line[(digits + 3)...])))
    // libcurl writes the status lines of HTTP/2, without a reason. Any other is a forged HTTP/1 response.
    guard version != "2" || reason.isEmpty else { return nil }
    return StatusLine(version: version, status: HTTP.Status(code: status, reasonPhrase: reason))
  }

  private static func version(_ text: UnsafeRawBufferPointer) -> String? {
    switch text.count {
    case 1: text[0] == 50 ? "2" : nil
    case 3: text.starts(with: "1.1") ? "1.1" : text.starts(with: "1.0") ? "1.0" : nil
    default: nil
    }
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func firstOffset(of byte: UInt8) -> Int? {
    guard let baseAddress, let found = memchr(baseAddress, Int32(byte), count) else { return nil }
    return UnsafeRawPointer(found) - baseAddress
  }

  fileprivate func starts(with text: StaticString) -> Bool {
    guard let baseAddress, count >= text.utf8CodeUnitCount else { return false }
    return memcmp(baseAddress, text.utf8Start, text.utf8CodeUnitCount) == 0
  }
}
