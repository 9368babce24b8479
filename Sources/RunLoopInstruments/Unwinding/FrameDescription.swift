// SPDX-License-Identifier: Apache-2.0

/// What `.eh_frame` says of one function: where it is, and how its frames are undone.
///
/// It is read from the memory of the process, where every library has it.
struct FrameDescription {
  /// The function's code.
  let code: Range<UInt64>
  let common: CommonFrameInformation
  let instructions: [UInt8]

  /// The tables that describe functions have offsets of 32 bits.
  private static let longestFunction: UInt64 = 1 << 32

  /// - Parameter place: The address of the description.
  init(at place: UInt64, in memory: some ReadableMemory) throws(ByteReader.Malformed) {
    var reader = try memory.entry(at: place)
    let distance = try reader.number(4)
    // Zero stands in what several descriptions have in common.
    guard distance != 0 else { throw ByteReader.Malformed() }
    common = try CommonFrameInformation(at: place &+ 4 &- distance, in: memory)
    let start = try reader.pointer(common.pointerEncoding)
    let (end, isOver) = try start.addingReportingOverflow(reader.pointer(common.pointerEncoding & 0x0f))
    guard !isOver, end - start <= FrameDescription.longestFunction else { throw ByteReader.Malformed() }
    code = start..<end
    if common.isAugmented { _ = try reader.take(reader.unsignedLEB()) }
    instructions = reader.rest()
  }
}

/// What several functions of `.eh_frame` have in common.
struct CommonFrameInformation {
  private(set) var pointerEncoding: UInt8 = 0
  /// Whether the kernel made the frame when it called a handler: the code that was interrupted made no call.
  private(set) var isSignalFrame = false
  let isAugmented: Bool
  let codeAlignment: UInt64
  let dataAlignment: Int64
  /// The number of the register that stands for the return address.
  let returnColumn: Int
  private(set) var instructions: [UInt8] = []

  init(at place: UInt64, in memory: some ReadableMemory) throws(ByteReader.Malformed) {
    var reader = try memory.entry(at: place)
    guard try reader.number(4) == 0 else { throw ByteReader.Malformed() }
    let version = try reader.byte()
    guard [1, 3, 4].contains(version) else { throw ByteReader.Malformed() }
    let augmentation = try reader.text()
    if version == 4 { _ = try reader.number(2) }
    codeAlignment = try reader.unsignedLEB()
    dataAlignment = try reader.signedLEB()
    returnColumn = try Int(clamping: version == 1 ? UInt64(reader.byte()) : reader.unsignedLEB())
    isAugmented = augmentation.first == UInt8(ascii: "z")
    // Without its length nothing is known of what an augmentation adds.
    guard isAugmented || augmentation.isEmpty else { throw ByteReader.Malformed() }
    if isAugmented {
      var data = try ByteReader(reader.take(reader.unsignedLEB()))
      try read(augmentation.dropFirst(), &data)
    }
    instructions = reader.rest()
  }

  private mutating func read(
    _ augmentation: ArraySlice<UInt8>, _ data: inout ByteReader
  ) throws(ByteReader.Malformed) {
    for letter in augmentation {
      switch UnicodeScalar(letter) {
      case "R": pointerEncoding = try data.byte()
      // Of the language only the lengths count: where its pointer is to is not asked.
      case "L": _ = try data.byte()
      case "P": _ = try data.pointer(data.byte() & 0x0f)
      case "S": isSignalFrame = true
      // The return address is signed with another key.
      case "B": break
      default: throw ByteReader.Malformed()
      }
    }
  }
}

extension ReadableMemory {
  /// No description is longer.
  private var longest: UInt64 { 1 << 18 }

  /// The bytes of an entry of `.eh_frame` behind its length.
  fileprivate func entry(at place: UInt64) throws(ByteReader.Malformed) -> ByteReader {
    let head = bytes(at: place, count: 4)
    guard head.count == 4 else { throw ByteReader.Malformed() }
    let length = head.number(0, 4)
    guard length >= 4, length <= longest else { throw ByteReader.Malformed() }
    let content = bytes(at: place &+ 4, count: Int(length))
    guard content.count == Int(length) else { throw ByteReader.Malformed() }
    return ByteReader(content, at: place &+ 4)
  }
}
