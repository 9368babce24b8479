// SPDX-License-Identifier: Apache-2.0

/// Parses the framing of a chunked body, to find out why libcurl rejects one.
///
/// libcurl decodes the chunks itself, but reports garbage between them with the same error code as a lost connection.
/// This parser is as lenient as libcurl.
struct ChunkReader {
  enum State: Hashable {
    /// Everything so far is valid, but the end has not been received.
    case incomplete
    /// The last chunk and the end of the trailers were received.
    case complete
    /// There is data that is neither a chunk length nor the end of a chunk.
    case broken
    /// A line of the trailers is longer than ``longestTrailerLine`` bytes.
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

  /// The longest trailer line that libcurl accepts: its buffer has 4096 bytes for the line, its end and a zero byte.
  static let longestTrailerLine = 4093
  private static let mostDigits = 16

  private(set) var state = State.incomplete
  private var place = Place.length(digits: 0)
  /// The length being parsed, and then the number of missing bytes of the chunk.
  private var missing: UInt64 = 0

  /// Parses bytes as received.
  ///
  /// - Complexity: O(n), where n is the number of bytes that are not chunk data.
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
