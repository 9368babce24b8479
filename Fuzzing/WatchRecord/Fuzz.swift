// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer.
///
/// The decoder must stay within the bytes: the records are the bytes, one after the other, up to the first incomplete
/// one.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  var offset = 0
  WatchRecord.forEach(in: bytes) { record in
    precondition(offset + WatchRecord.headerSize <= count, "a record from beyond the bytes")
    func word(_ place: Int) -> UInt32 { bytes.loadUnaligned(fromByteOffset: offset + place, as: UInt32.self) }
    precondition(UInt32(bitPattern: record.watch) == word(0) && record.mask == word(4) && record.cookie == word(8))
    let length = Int(word(12))
    offset += WatchRecord.headerSize
    precondition(offset + length <= count, "a name from beyond the bytes")
    precondition(record.name.count <= length && !record.name.contains(0))
    precondition(bytes[offset..<offset + record.name.count].elementsEqual(record.name))
    precondition(record.name.count == length || bytes[offset + record.name.count] == 0, "a name that is cut")
    offset += length
  }
  // The remaining bytes are not a record.
  guard count - offset >= WatchRecord.headerSize else { return 0 }
  let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
  precondition(length > count - offset - WatchRecord.headerSize, "a record that was left out")
  return 0
}
