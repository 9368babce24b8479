// SPDX-License-Identifier: Apache-2.0

/// The header of a packet between two message ports, and its validation.
///
/// A value on bytes without a socket, allocation or import, so that it can be fuzzed separately. All numbers are
/// little-endian:
///
/// | bytes | meaning |
/// |---|---|
/// | 0..<4 | the magic, `RLMP` |
/// | 4 | the version, 1 |
/// | 5 | the ``Kind`` |
/// | 6 | 1 if the payload is not in the packet, but in memory that is passed as the first descriptor |
/// | 7 | zero |
/// | 8..<12 | the sender's ID of the message, the reason of a rejection, or the ``time(of:)`` of a reply |
/// | 12..<14 | the number of descriptors of the message, not counting the payload's memory |
/// | 14..<16 | zero |
/// | 16..<24 | the token, which a reply, a rejection and a confirmation return |
/// | 24..<32 | the length of the payload |
struct MessageFrame: Hashable, Sendable {
  enum Kind: UInt8, Sendable, CaseIterable {
    /// A message whose sender is waiting for a reply.
    case request = 1
    /// A message whose sender expects no reply.
    case oneWay = 2
    /// The reply to a request.
    case reply = 3
    /// The request was received, and there is no reply to it.
    case noReply = 4
    /// The message was rejected for the reason in the ID. A token of zero rejects the whole connection.
    case rejection = 5
    /// All one-way messages up to this token have been received.
    case confirmation = 6

    /// Whether a packet of this kind can have a payload and descriptors.
    var hasContent: Bool { self == .request || self == .oneWay || self == .reply }

    /// Whether this ends a request: with a reply, or with the report that there is none.
    var isAnswer: Bool { self == .reply || self == .noReply }

    /// Whether this is a message to a local port, whose sender is notified of the outcome.
    var expectsAnswer: Bool { self == .request || self == .oneWay }
  }

  /// The reasons why a packet is malformed.
  enum Malformation: Error, Hashable, Sendable {
    case tooShort, magic, version, kind, flags, reserved, length, descriptors, content, token
  }

  var kind: Kind
  var isOutOfLine = false
  var id: Int32 = 0
  var descriptorCount = 0
  var token: UInt64 = 0
  var length = 0

  /// The size of the header in bytes.
  static let size = 32
  /// The maximum size of a payload in its packet, above which it is sent in memory.
  static let inlineLimit = 32 * 1024
  /// The maximum number of descriptors of a message; one more may carry the payload.
  static let descriptorLimit = 252
  private static let magic: UInt32 = 0x504D_4C52
  private static let version: UInt8 = 1

  init(
    _ kind: Kind, id: Int32 = 0, token: UInt64 = 0, length: Int = 0, isOutOfLine: Bool = false, descriptorCount: Int = 0
  ) {
    self.kind = kind
    self.isOutOfLine = isOutOfLine
    self.id = id
    self.descriptorCount = descriptorCount
    self.token = token
    self.length = length
  }

  /// The number of descriptors that are sent with the packet.
  var carriedDescriptors: Int { descriptorCount + (isOutOfLine ? 1 : 0) }

  /// Encodes the time at which a reply is sent, as the low bits of the monotonic clock's nanoseconds; the receiver
  /// uses it to determine the cost of waking up.
  static func time(of nanoseconds: Int64) -> Int32 { Int32(truncatingIfNeeded: nanoseconds) }

  /// Returns the time at which a reply that has just been received was sent.
  ///
  /// The value is not trusted, because it comes from another process: the result is always within the last five
  /// seconds.
  static func nanoseconds(of time: Int32, receivedAt now: Int64) -> Int64 {
    now - Int64(UInt32(bitPattern: Self.time(of: now) &- time))
  }

  /// Encodes the header into the first ``size`` bytes.
  func encode(into bytes: UnsafeMutableRawBufferPointer) {
    bytes.storeBytes(of: Self.magic.littleEndian, toByteOffset: 0, as: UInt32.self)
    bytes[4] = Self.version
    bytes[5] = kind.rawValue
    bytes[6] = isOutOfLine ? 1 : 0
    bytes[7] = 0
    bytes.storeBytes(of: id.littleEndian, toByteOffset: 8, as: Int32.self)
    bytes.storeBytes(of: UInt16(truncatingIfNeeded: descriptorCount).littleEndian, toByteOffset: 12, as: UInt16.self)
    bytes.storeBytes(of: 0, toByteOffset: 14, as: UInt16.self)
    bytes.storeBytes(of: token.littleEndian, toByteOffset: 16, as: UInt64.self)
    bytes.storeBytes(of: UInt64(length).littleEndian, toByteOffset: 24, as: UInt64.self)
  }

  /// Decodes the header of a complete packet, whose payload begins after ``size`` bytes.
  ///
  /// For any input, the resulting frame is consistent: its payload is either completely in the packet or not at all.
  /// The receiver must check the length of a payload that is not in the packet.
  init(decoding packet: UnsafeRawBufferPointer) throws(Malformation) {
    guard packet.count >= Self.size else { throw .tooShort }
    func number<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
      Number(littleEndian: packet.loadUnaligned(fromByteOffset: offset, as: type))
    }
    guard number(0, UInt32.self) == Self.magic else { throw .magic }
    guard packet[4] == Self.version else { throw .version }
    guard let kind = Kind(rawValue: packet[5]) else { throw .kind }
    guard packet[6] <= 1 else { throw .flags }
    guard packet[7] == 0, number(14, UInt16.self) == 0 else { throw .reserved }
    let isOutOfLine = packet[6] == 1
    let descriptors = Int(number(12, UInt16.self))
    guard descriptors <= Self.descriptorLimit else { throw .descriptors }
    guard let length = Int(exactly: number(24, UInt64.self)) else { throw .length }
    if isOutOfLine {
      guard packet.count == Self.size, length > 0 else { throw .length }
    } else {
      guard length == packet.count - Self.size, length <= Self.inlineLimit else { throw .length }
    }
    guard kind.hasContent || (length == 0 && descriptors == 0) else { throw .content }
    let token = number(16, UInt64.self)
    guard token != 0 || kind == .rejection else { throw .token }
    self.init(
      kind, id: number(8, Int32.self), token: token, length: length, isOutOfLine: isOutOfLine,
      descriptorCount: descriptors)
  }
}
