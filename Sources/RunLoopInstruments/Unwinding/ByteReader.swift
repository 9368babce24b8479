// SPDX-License-Identifier: Apache-2.0

/// Reads numbers from untrusted bytes, and throws if there are too few.
struct ByteReader {
  /// The error for malformed data.
  struct Malformed: Error {}

  private let bytes: [UInt8]
  /// The address of the first byte in the memory that it was read from.
  private let address: UInt64
  private(set) var place = 0

  init(_ bytes: [UInt8], at address: UInt64 = 0) {
    self.bytes = bytes
    self.address = address
  }

  var isAtEnd: Bool { place == bytes.count }
  var count: Int { bytes.count }

  mutating func number(_ size: Int) throws(Malformed) -> UInt64 {
    guard size <= bytes.count - place else { throw Malformed() }
    defer { place += size }
    return bytes.number(place, size)
  }

  mutating func signed(_ size: Int) throws(Malformed) -> Int64 {
    let unused = UInt64(64 - 8 * size)
    return try Int64(bitPattern: number(size) << unused) >> Int64(unused)
  }

  mutating func byte() throws(Malformed) -> UInt8 { try UInt8(number(1)) }

  /// Reads an unsigned LEB128 number, ignoring bits beyond 64.
  mutating func unsignedLEB() throws(Malformed) -> UInt64 { try leb().value }

  mutating func signedLEB() throws(Malformed) -> Int64 {
    let (value, bits) = try leb()
    return bits >= 64 ? Int64(bitPattern: value) : Int64(bitPattern: value << (64 - bits)) >> Int64(64 - bits)
  }

  private mutating func leb() throws(Malformed) -> (value: UInt64, bits: UInt64) {
    var (value, bits): (UInt64, UInt64) = (0, 0)
    while true {
      let next = try byte()
      if bits < 64 { value |= UInt64(next & 0x7f) << bits }
      bits += 7
      if next & 0x80 == 0 { return (value, bits) }
    }
  }

  mutating func take(_ count: UInt64) throws(Malformed) -> [UInt8] {
    guard count <= UInt64(bytes.count - place) else { throw Malformed() }
    defer { place += Int(count) }
    return Array(bytes[place..<(place + Int(count))])
  }

  /// Reads the remaining bytes.
  mutating func rest() -> [UInt8] {
    defer { place = bytes.count }
    return Array(bytes[place...])
  }

  /// Moves forward or back within the bytes.
  mutating func move(by offset: Int64) throws(Malformed) {
    let (target, isOver) = Int64(place).addingReportingOverflow(offset)
    guard !isOver, target >= 0, target <= Int64(bytes.count) else { throw Malformed() }
    place = Int(target)
  }

  /// Reads a zero-terminated string.
  mutating func text() throws(Malformed) -> [UInt8] {
    var text: [UInt8] = []
    while true {
      let next = try byte()
      if next == 0 { return text }
      text.append(next)
    }
  }

  /// Reads a pointer in one of the encodings of unwind tables.
  mutating func pointer(_ encoding: UInt8) throws(Malformed) -> UInt64 {
    let own = address &+ UInt64(place)
    let value: UInt64
    switch encoding & 0x0f {
    case 0x00, 0x04, 0x0c: value = try number(8)
    case 0x01: value = try unsignedLEB()
    case 0x02: value = try number(2)
    case 0x03: value = try number(4)
    case 0x09: value = try UInt64(bitPattern: signedLEB())
    case 0x0a: value = try UInt64(bitPattern: signed(2))
    case 0x0b: value = try UInt64(bitPattern: signed(4))
    default: throw Malformed()
    }
    switch encoding & 0x70 {
    case 0x00: return value
    // Relative to its own address.
    case 0x10: return own &+ value
    default: throw Malformed()
    }
  }
}
