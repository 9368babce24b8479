// SPDX-License-Identifier: Apache-2.0

/// Splits a stream of bytes into lines that are numbers.
struct Lines {
  /// The maximum length of a line, longer than that of any number.
  private static let longest = 12

  private var rest: [UInt8] = []

  /// Calls a closure with each number; returns false if a line is not a number or too long.
  mutating func take(_ bytes: UnsafeRawBufferPointer, _ body: (Int32) -> Void) -> Bool {
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        if rest.count == Self.longest { return false }
        rest.append(byte)
        continue
      }
      guard let number = Int32(String(decoding: rest, as: UTF8.self)) else { return false }
      rest.removeAll(keepingCapacity: true)
      body(number)
    }
    return true
  }
}
