// SPDX-License-Identifier: Apache-2.0

/// An incremental parser for the requests of an HTTP/1 connection.
///
/// It is strict: anything that two parsers could interpret differently is rejected.
struct RequestReader {
  struct Parsed {
    var method = ""
    var target = ""
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var isVersion10 = false

    /// Returns the values of a header, whose name must be in lower case.
    func values(_ name: String) -> [String] { headers.filter { $0.name.lowercased() == name }.map(\.value) }

    /// Whether the client allows the connection to be reused.
    var isKept: Bool {
      let options = values("connection").joined(separator: ",").lowercased().split(separator: ",").map(trimmed)
      return isVersion10 ? options.contains("keep-alive") : !options.contains("close")
    }
  }

  enum Failure: Error {
    case malformed
    case tooLarge
  }

  private enum Phase {
    case start
    case headers
    case bytes(Int)
    case size
    case chunk(Int)
    case chunkEnd
    case trailers
  }

  static let headLimit = 64 * 1024

  private let bodyLimit: Int
  private var buffer: [UInt8] = []
  /// The number of consumed bytes, and the offset up to which there is no line ending.
  private var position = 0
  private var scanned = 0
  private var phase = Phase.start
  private var parsed = Parsed()
  private var headSize = 0
  /// Whether the client waits for a 100 response before it sends the body.
  private var awaitsContinue = false

  init(bodyLimit: Int) { self.bodyLimit = bodyLimit }

  /// Whether no incomplete request is buffered.
  var isEmpty: Bool { if case .start = phase { position == buffer.count } else { false } }

  mutating func append(_ bytes: some Sequence<UInt8>) {
    buffer.removeFirst(position)
    (position, scanned) = (0, max(0, scanned - position))
    buffer += bytes
  }

  /// Whether the client is waiting for a 100 response, which is sent once.
  mutating func takeContinue() -> Bool {
    defer { awaitsContinue = false }
    return awaitsContinue
  }

  /// Returns the next complete request, or nil if there is none yet.
  mutating func next() throws(Failure) -> Parsed? {
    while true {
      switch phase {
      case .start:
        guard let line = try line() else { return nil }
        // An empty line before a request is skipped, as RFC 9112 recommends.
        if !line.isEmpty { try begin(line) }
      case .headers:
        guard let line = try line() else { return nil }
        if !line.isEmpty {
          parsed.headers.append(try Self.header(line))
        } else if let whole = try endHead() {
          return whole
        }
      case .bytes(let rest):
        guard let rest = take(rest) else { return complete() }
        phase = .bytes(rest)
        return nil
      case .size:
        guard let line = try line() else { return nil }
        let size = try Self.chunkSize(line)
        guard size <= bodyLimit - parsed.body.count else { throw .tooLarge }
        phase = size == 0 ? .trailers : .chunk(size)
      case .chunk(let rest):
        guard let rest = take(rest) else {
          phase = .chunkEnd
          continue
        }
        phase = .chunk(rest)
        return nil
      case .chunkEnd:
        guard let line = try line() else { return nil }
        guard line.isEmpty else { throw .malformed }
        phase = .size
      case .trailers:
        guard let line = try line() else { return nil }
        guard !line.isEmpty else { return complete() }
        _ = try Self.header(line)
      }
    }
  }

  private mutating func complete() -> Parsed {
    defer {
      (parsed, phase, headSize, awaitsContinue) = (Parsed(), .start, 0, false)
    }
    return parsed
  }

  /// Consumes up to a number of bytes of the body, and returns the number still missing, or nil if there are none.
  private mutating func take(_ count: Int) -> Int? {
    let taken = min(count, buffer.count - position)
    parsed.body += buffer[position..<position + taken]
    position += taken
    awaitsContinue = awaitsContinue && taken == 0
    return taken == count ? nil : count - taken
  }

  /// Returns the next line without its line ending, or nil if it is incomplete.
  private mutating func line() throws(Failure) -> ArraySlice<UInt8>? {
    let start = position
    guard let end = buffer[max(start, scanned)...].firstIndex(of: 10) else {
      scanned = buffer.count
      guard headSize + buffer.count - start <= Self.headLimit else { throw .tooLarge }
      return nil
    }
    // There may be many lines with chunk sizes, so each is limited separately.
    if case .size = phase { headSize = 0 }
    if case .chunkEnd = phase { headSize = 0 }
    headSize += end + 1 - start
    guard headSize <= Self.headLimit else { throw .tooLarge }
    position = end + 1
    guard end > start, buffer[end - 1] == 13 else { throw .malformed }
    let line = buffer[start..<end - 1]
    guard line.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else { throw .malformed }
    return line
  }

  private mutating func begin(_ line: ArraySlice<UInt8>) throws(Failure) {
    let words = line.split(separator: 32, omittingEmptySubsequences: false)
    guard words.count == 3, Self.isToken(words[0]), !words[1].isEmpty, !words[1].contains(9) else { throw .malformed }
    parsed.method = String(decoding: words[0], as: UTF8.self)
    parsed.target = String(decoding: words[1], as: UTF8.self)
    switch String(decoding: words[2], as: UTF8.self) {
    case "HTTP/1.1": break
    case "HTTP/1.0": parsed.isVersion10 = true
    default: throw .malformed
    }
    phase = .headers
  }

  /// Determines the length of the body, and returns the request if it has none.
  private mutating func endHead() throws(Failure) -> Parsed? {
    let lengths = parsed.values("content-length")
    let codings = parsed.values("transfer-encoding")
    guard parsed.isVersion10 || parsed.values("host").count == 1 else { throw .malformed }
    awaitsContinue = !parsed.isVersion10 && parsed.values("expect").contains { $0.lowercased() == "100-continue" }
    guard codings.isEmpty else {
      guard lengths.isEmpty, !parsed.isVersion10, codings.map({ $0.lowercased() }) == ["chunked"] else {
        throw .malformed
      }
      phase = .size
      return nil
    }
    guard let text = lengths.first else { return complete() }
    guard Set(lengths).count == 1, !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
      throw .malformed
    }
    guard let length = Int(text), length <= bodyLimit else { throw .tooLarge }
    phase = .bytes(length)
    return nil
  }

  private static func header(_ line: ArraySlice<UInt8>) throws(Failure) -> (name: String, value: String) {
    guard let colon = line.firstIndex(of: 58), isToken(line[..<colon]) else { throw .malformed }
    return (
      String(decoding: line[..<colon], as: UTF8.self),
      trimmed(String(decoding: line[(colon + 1)...], as: UTF8.self)[...])
    )
  }

  private static func chunkSize(_ line: ArraySlice<UInt8>) throws(Failure) -> Int {
    let digits = line.prefix { $0 != 59 }
    guard !digits.isEmpty, digits.count <= 15, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
      let size = Int(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw .malformed }
    return size
  }

  private static func isToken(_ bytes: ArraySlice<UInt8>) -> Bool {
    !bytes.isEmpty
      && bytes.allSatisfy { byte in
        switch byte {
        case 48...57, 65...90, 97...122: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }
}

/// Returns a text without surrounding spaces and tabs.
func trimmed(_ text: Substring) -> String {
  let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
  return String(String(text.drop(while: isSpace).reversed().drop(while: isSpace).reversed()))
}
