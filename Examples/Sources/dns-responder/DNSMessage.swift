// SPDX-License-Identifier: Apache-2.0

/// A question to a name server, parsed from a datagram (RFC 1035), and the answers to it.
///
/// The bytes are untrusted: parsing any input ends with a question or a response code.
struct DNSQuestion {
  /// The DNS response codes.
  enum Code: UInt16 {
    case none = 0
    case formatError = 1
    case noSuchName = 3
    case notImplemented = 4
  }

  enum Reading {
    case question(DNSQuestion)
    /// A message with a header, whose reply is a code only.
    case rejected(Code, header: [UInt8])
    /// A message that is not a question. A reply could cause an endless exchange of replies.
    case ignored
  }

  static let address: UInt16 = 1
  static let address6: UInt16 = 28
  static let text: UInt16 = 16
  private static let any: UInt16 = 255
  private static let internet: UInt16 = 1

  /// The question's name in lower case, without a trailing dot.
  let name: String
  let type: UInt16
  private let header: [UInt8]
  /// The bytes of the question, which an answer repeats.
  private let section: [UInt8]

  private static let headerSize = 12
  /// The maximum size of an answer over UDP without EDNS.
  private static let sizeLimit = 512

  static func read(_ bytes: [UInt8]) -> Reading {
    guard bytes.count >= headerSize else { return .ignored }
    let header = Array(bytes[..<headerSize])
    let flags = word(header, 2)
    guard flags & 0x8000 == 0 else { return .ignored }
    guard flags & 0x7800 == 0 else { return .rejected(.notImplemented, header: header) }
    guard word(header, 4) == 1 else { return .rejected(.formatError, header: header) }
    var labels: [String] = []
    var place = headerSize
    var total = 0
    while true {
      guard place < bytes.count else { return .rejected(.formatError, header: header) }
      let count = Int(bytes[place])
      place += 1
      if count == 0 { break }
      total += count + 1
      // A question has no earlier name that a compression pointer could refer to.
      guard count < 64, total < 255, place + count <= bytes.count else {
        return .rejected(.formatError, header: header)
      }
      labels.append(String(decoding: bytes[place..<place + count], as: UTF8.self).lowercased())
      place += count
    }
    guard place + 4 <= bytes.count else { return .rejected(.formatError, header: header) }
    let question = DNSQuestion(
      name: labels.joined(separator: "."), type: word(bytes, place), header: header,
      section: Array(bytes[headerSize..<place + 4]))
    guard word(bytes, place + 2) == internet else { return .rejected(.notImplemented, header: header) }
    return .question(question)
  }

  func wants(_ type: UInt16) -> Bool { self.type == type || self.type == Self.any }

  /// The answer with these records; those that do not fit are left out, and the answer is marked as truncated.
  func answer(_ records: [(type: UInt16, data: [UInt8])], _ code: Code = .none, lifetime: UInt32 = 60) -> [UInt8] {
    var body = section
    var count: UInt16 = 0
    var isCut = false
    for record in records {
      // A pointer to the question's name.
      var next: [UInt8] = [0xC0, UInt8(Self.headerSize)] + Self.bytes(record.type) + Self.bytes(Self.internet)
      next += Self.bytes(UInt16(lifetime >> 16)) + Self.bytes(UInt16(lifetime & 0xFFFF))
      next += Self.bytes(UInt16(record.data.count)) + record.data
      guard Self.headerSize + body.count + next.count <= Self.sizeLimit else {
        isCut = true
        break
      }
      body += next
      count += 1
    }
    return Self.header(of: header, code, questions: 1, answers: count, isCut: isCut) + body
  }

  /// An answer that consists of a code only.
  static func rejection(_ code: Code, header: [UInt8]) -> [UInt8] {
    Self.header(of: header, code, questions: 0, answers: 0, isCut: false)
  }

  private static func header(
    of asked: [UInt8], _ code: Code, questions: UInt16, answers: UInt16, isCut: Bool
  ) -> [UInt8] {
    // An authoritative answer; RD is copied, and recursion is not available.
    let flags = 0x8400 | (word(asked, 2) & 0x7900) | (isCut ? 0x0200 : 0) | code.rawValue
    return asked[..<2] + bytes(flags) + bytes(questions) + bytes(answers) + [0, 0, 0, 0]
  }

  private static func word(_ bytes: [UInt8], _ place: Int) -> UInt16 {
    UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1])
  }

  private static func bytes(_ word: UInt16) -> [UInt8] { [UInt8(word >> 8), UInt8(word & 0xFF)] }
}
