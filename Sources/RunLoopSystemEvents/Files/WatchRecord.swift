// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// A record of the kernel's queue of file changes.
struct WatchRecord: Hashable {
  /// The record's watch, or a negative number if it has none.
  let watch: Int32
  let mask: UInt32
  /// A number shared by both halves of a move.
  let cookie: UInt32
  /// The name of the entry that has changed, or empty for the watched file itself.
  let name: [UInt8]

  func has(_ bits: Int32...) -> Bool { bits.contains { mask & UInt32($0) != 0 } }
}

extension WatchRecord {
  /// The number of bytes before the name: watch, mask, cookie, and the length of the padded name.
  static let headerSize = 16

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

extension WatchRecord {
  /// The records of two names that may have been exchanged: the first was moved to the second, and the second to the
  /// first.
  struct Exchange {
    static let count = 4

    /// The departing half of each move.
    let first: WatchRecord
    let second: WatchRecord

    /// Returns `nil` if the first records are not an exchange.
    init?(_ records: ArraySlice<WatchRecord>) {
      guard records.count >= Self.count, let start = records.first, start.has(IN_MOVED_FROM) else { return nil }
      let place = records.startIndex
      let (there, next, back) = (records[place + 1], records[place + 2], records[place + 3])
      guard there.has(IN_MOVED_TO), there.cookie == start.cookie,
        next.has(IN_MOVED_FROM), next.watch == there.watch, next.name == there.name,
        back.has(IN_MOVED_TO), back.cookie == next.cookie, back.watch == start.watch, back.name == start.name
      else { return nil }
      (first, second) = (start, next)
    }
  }
}
