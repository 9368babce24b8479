// SPDX-License-Identifier: Apache-2.0

/// The requests of an HTTP/1 connection, as their bytes arrive.
///
/// It is strict: whatever two readers could understand differently is malformed.
struct RequestReader {
  /// A whole request.
  struct Parsed {
    var method = ""
    var target = ""
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var isVersion10 = false

    /// The values of a header.
    func values(_ name: String) -> [String] { headers.filter { $0.name.lowercased() == name }.map(\.value) }

    /// Whether the client keeps the connection.
    var isKept: Bool {
      let options = values("connection").joined(separator: ",").lowercased().split(separator: ",").map(trimmed)
      return isVersion10 ? options.contains("keep-alive") : !options.contains("close")
    }
  }

  /// Why bytes are no request.
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
  /// How much of the buffer was read, and up to where it has no end of a line.
  private var position = 0
  private var scanned = 0
  private var phase = Phase.start
  private var parsed = Parsed()
  private var headSize = 0
  /// Whether the client waits for 100 before it sends the body.
  private var awaitsContinue = false

  init(bodyLimit: Int) { self.bodyLimit = bodyLimit }

  /// Whether no byte of a request has arrived that is not complete.
  var isEmpty: Bool { if case .start = phase { position == buffer.count } else { false } }

  mutating func append(_ bytes: some Sequence<UInt8>) {
    buffer.removeFirst(position)
    (position, scanned) = (0, max(0, scanned - position))
    buffer += bytes
  }

  /// Whether the client waits for 100 now; it is sent once.
  mutating func takeContinue() -> Bool {
    defer { awaitsContinue = false }
    return awaitsContinue
  }

  /// The next complete request; nil if there is none yet.
  mutating func next() throws(Failure) -> Parsed? {
    while true {
      switch phase {
      case .start:
        guard let line = try line() else { return nil }
        // An empty line before a request is passed over, as RFC 9112 advises.
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

  /// Takes up to a number of bytes of the body; returns how many are missing, nil for none.
  private mutating func take(_ count: Int) -> Int? {
    let taken = min(count, buffer.count - position)
    parsed.body += buffer[position..<position + taken]
    position += taken
    awaitsContinue = awaitsContinue && taken == 0
    return taken == count ? nil : count - taken
  }

  /// The next line, without its end; nil if it is not complete.
  private mutating func line() throws(Failure) -> ArraySlice<UInt8>? {
    let start = position
    guard let end = buffer[max(start, scanned)...].firstIndex(of: 10) else {
      scanned = buffer.count
      guard headSize + buffer.count - start <= Self.headLimit else { throw .tooLarge }
      return nil
    }
    // Those of chunks are many: they count by themselves.
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

  /// Decides where the body ends; returns the request if it has none.
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

/// Without the spaces and tabs around it.
func trimmed(_ text: Substring) -> String {
  let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
  return String(String(text.drop(while: isSpace).reversed().drop(while: isSpace).reversed()))
}
