// SPDX-License-Identifier: Apache-2.0

/// Reads the frame of a body that is sent in chunks, to know why libcurl does not take one.
///
/// libcurl decodes the chunks. It reports garbage between them by the number that it also has for a lost connection, so
/// that what was wrong is read here. It is as lenient as libcurl is.
struct ChunkReader {
  /// What was found.
  enum State: Hashable {
    /// The chunks are right so far; what is missing was not received.
    case incomplete
    /// The last chunk and the end of the trailer were received.
    case complete
    /// There are bytes that are neither a length nor the end of a chunk.
    case broken
    /// A line of the trailer has more than ``longestTrailerLine`` bytes.
    case tooLong
  }

  private enum Place {
    case length(digits: Int)
    case lineEnd
    case data
    case dataEnd
    case trailer(count: Int)
    case trailerEnd
    case last
  }

  /// The longest line of a trailer that libcurl takes: it has 4096 bytes for the line, its end and a zero byte.
  static let longestTrailerLine = 4093
  /// The most digits that a length has.
  private static let mostDigits = 16

  private(set) var state = State.incomplete
  private var place = Place.length(digits: 0)
  /// The length that is being read, and then the bytes of the chunk that are missing.
  private var missing: UInt64 = 0

  /// Takes bytes as they stand on the wire.
  ///
  /// - Complexity: O(*c*), where *c* is the number of bytes that are not data.
  mutating func take(_ bytes: UnsafeRawBufferPointer) {
    var index = 0
    while index < bytes.count, state == .incomplete {
      if case .data = place {
        let count = Int(min(missing, UInt64(bytes.count - index)))
        index += count
        missing -= UInt64(count)
        if missing == 0 { place = .dataEnd }
      } else {
        take(bytes[index])
        index += 1
      }
    }
  }

  private mutating func take(_ byte: UInt8) {
    let (carriageReturn, lineFeed) = (UInt8(13), UInt8(10))
    switch place {
    case .length(let digits):
      if let digit = Self.digit(byte) {
        guard digits < Self.mostDigits else { return state = .broken }
        missing = missing << 4 | UInt64(digit)
        place = .length(digits: digits + 1)
      } else if digits == 0 || missing > UInt64(Int64.max) {
        state = .broken
      } else if byte == lineFeed {
        endLine()
      } else {
        place = .lineEnd
      }
    case .lineEnd: if byte == lineFeed { endLine() }
    case .data: break
    case .dataEnd:
      if byte == lineFeed {
        place = .length(digits: 0)
      } else if byte != carriageReturn {
        state = .broken
      }
    case .trailer(let count):
      if byte != lineFeed, byte != carriageReturn {
        place = .trailer(count: count + 1)
        if count >= Self.longestTrailerLine { state = .tooLong }
      } else if count > 0 {
        place = byte == lineFeed ? .trailer(count: 0) : .trailerEnd
      } else if byte == lineFeed {
        state = .complete
      } else {
        place = .last
      }
    case .trailerEnd:
      if byte == lineFeed { place = .trailer(count: 0) } else { state = .broken }
    case .last: state = byte == lineFeed ? .complete : .broken
    }
  }

  private mutating func endLine() { place = missing == 0 ? .trailer(count: 0) : .data }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
