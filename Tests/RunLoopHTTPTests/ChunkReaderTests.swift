// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// The reader's state for a chunked body, however its bytes are divided.
@Suite struct ChunkReaderTests {
  /// Returns the state after a text was read in parts of a size.
  private func state(_ text: String, by size: Int) -> ChunkReader.State {
    var reader = ChunkReader()
    let bytes = Array(text.utf8)
    bytes.withUnsafeBytes { bytes in
      for start in stride(from: 0, to: bytes.count, by: size) {
        reader.take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + size, bytes.count)]))
      }
    }
    return reader.state
  }

  @Test(
    "a chunked body is complete, truncated or malformed, wherever its bytes are divided",
    arguments: [
      ("5\r\nhello\r\n0\r\n\r\n", .complete), ("5;a=b\r\nhello\r\n0\r\nX: y\r\nZ: 1\r\n\r\n", .complete),
      ("00aF\r\n\(String(repeating: "x", count: 175))\r\n000\r\n\r\n", .complete), ("1\nx\n0\n\n", .complete),
      ("0\r\n\r\nzz", .complete), ("", .incomplete), ("5", .incomplete), ("5\r\nhel", .incomplete),
      ("5\r\nhello\r\n", .incomplete), ("0\r\nX: y\r\n", .incomplete), ("ffffff\r\n", .incomplete),
      ("7fffffffffffffff\r\nx", .incomplete), ("zz\r\nhello\r\n", .broken), ("-5\r\nhello\r\n", .broken),
      ("\r\n", .broken), (" 5\r\n", .broken), ("fffffffffffffffff\r\n", .broken), ("ffffffffffffffff\r\n", .broken),
      ("0\r\nX: y\rZ", .broken), ("0\r\n\rZ", .broken), ("0\r\nX: y\r\r\n", .broken), ("0\r\n\r", .incomplete),
      ("5\r\nhelloX\r\n", .broken), ("5\r\nhello\r\n\r\n", .broken),
      ("zz" + String(repeating: "x", count: 100_000), .broken),
      ("0\r\nX: " + String(repeating: "a", count: 4090) + "\r\n\r\n", .complete),
      ("0\r\nX: " + String(repeating: "a", count: 4091) + "\r\n\r\n", .tooLong),
      ("5\r\nhello\r\n0\r\nX: " + String(repeating: "a", count: 400_000), .tooLong),
    ] as [(String, ChunkReader.State)])
  func states(_ text: String, _ expected: ChunkReader.State) {
    for size in [1, 2, 3, 7, 1 << 20] { #expect(state(text, by: size) == expected, "\(text.prefix(40)) by \(size)") }
  }
}
