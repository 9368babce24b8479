// SPDX-License-Identifier: Apache-2.0

/// Writes Protocol Buffers messages, supporting only what a trace needs.
struct ProtobufWriter {
  private(set) var bytes: [UInt8] = []

  mutating func clear() { bytes.removeAll(keepingCapacity: true) }

  /// Appends a varint.
  private mutating func append(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  private mutating func key(_ field: Int, _ wireType: UInt64) { append(UInt64(field) << 3 | wireType) }

  mutating func number(_ field: Int, _ value: UInt64) {
    key(field, 0)
    append(value)
  }

  mutating func number(_ field: Int, _ value: Int64) { number(field, UInt64(bitPattern: value)) }

  mutating func fixed64(_ field: Int, _ value: UInt64) {
    key(field, 1)
    withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
  }

  mutating func double(_ field: Int, _ value: Double) { fixed64(field, value.bitPattern) }

  mutating func text(_ field: Int, _ value: String) {
    var value = value
    key(field, 2)
    value.withUTF8 {
      append(UInt64($0.count))
      bytes += $0
    }
  }

  /// Appends a nested message.
  mutating func message(_ field: Int, _ fill: (inout ProtobufWriter) -> Void) {
    var inner = ProtobufWriter()
    fill(&inner)
    key(field, 2)
    append(UInt64(inner.bytes.count))
    bytes += inner.bytes
  }
}
