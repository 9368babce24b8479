// SPDX-License-Identifier: Apache-2.0

/// One record of the kernel's queue of file changes.
struct WatchRecord: Hashable {
  /// The watch that it belongs to; negative: none.
  let watch: Int32
  let mask: UInt32
  /// What both halves of a move have in common.
  let cookie: UInt32
  /// Whose entry it is about; empty: the watched file itself.
  let name: [UInt8]

  func has(_ bits: Int32...) -> Bool { bits.contains { mask & UInt32($0) != 0 } }
}

extension WatchRecord {
  /// The bytes before the name: the watch, the mask, the cookie, and the length of the name with its padding.
  static let headerSize = 16

  /// Calls `body` with each record that is there as a whole.
  static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (WatchRecord) -> Void) {
    var rest = bytes[...]
    while rest.count >= headerSize {
      let start = rest.startIndex
      let length = Int(bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self))
      guard length <= rest.count - headerSize else { return }
      let end = start + headerSize + length
      body(
        WatchRecord(
          watch: bytes.loadUnaligned(fromByteOffset: start, as: Int32.self),
          mask: bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self),
          cookie: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt32.self),
          name: Array(bytes[(start + headerSize)..<end].prefix { $0 != 0 })))
      rest = bytes[end...]
    }
  }
}
