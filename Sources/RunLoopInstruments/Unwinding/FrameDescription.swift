// SPDX-License-Identifier: Apache-2.0

/// A function's entry in `.eh_frame`: its location, and how to unwind its frames.
///
/// It is read from the memory of the process, where every library has the section.
struct FrameDescription {
  /// The address range of the function.
  let code: Range<UInt64>
  let common: CommonFrameInformation
  let instructions: [UInt8]

  /// Unwind tables use 32-bit offsets.
  private static let longestFunction: UInt64 = 1 << 32

  /// Reads a frame description.
  ///
  /// - Parameter place: The address of the description.
  init(at place: UInt64, in memory: some ReadableMemory) throws(ByteReader.Malformed) {
    var reader = try memory.entry(at: place)
    let distance = try reader.number(4)
    // Zero marks a common information entry.
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

/// An entry that several functions in `.eh_frame` share.
struct CommonFrameInformation {
  private(set) var pointerEncoding: UInt8 = 0
  /// Whether this is the frame of a signal handler that the kernel called, so the interrupted code made no call.
  private(set) var isSignalFrame = false
  let isAugmented: Bool
  let codeAlignment: UInt64
  let dataAlignment: Int64
  /// The register number that represents the return address.
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
    // Without its length, unknown augmentation data cannot be skipped.
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
      // Language-specific data is skipped; only its length matters here.
      case "L": _ = try data.byte()
      case "P": _ = try data.pointer(data.byte() & 0x0f)
      case "S": isSignalFrame = true
      // The return address is signed with the B key.
      case "B": break
      default: throw ByteReader.Malformed()
      }
    }
  }
}

extension ReadableMemory {
  /// The maximum length of a description.
  private var longest: UInt64 { 1 << 18 }

  /// Reads an entry of `.eh_frame`, without its length field.
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
