// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer.
///
/// The decoder must reject the bytes, or return a frame that is consistent and encodes to the same bytes.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  guard let frame = try? MessageFrame(decoding: bytes) else { return 0 }
  precondition(frame.isOutOfLine ? bytes.count == MessageFrame.size : bytes.count == MessageFrame.size + frame.length)
  precondition(frame.isOutOfLine || frame.length <= MessageFrame.inlineLimit)
  precondition(frame.length >= 0 && frame.descriptorCount >= 0)
  precondition(frame.carriedDescriptors <= MessageFrame.descriptorLimit + 1)
  precondition(frame.kind.hasContent || (frame.length == 0 && frame.carriedDescriptors == 0))
  withUnsafeTemporaryAllocation(byteCount: MessageFrame.size, alignment: 8) { header in
    frame.encode(into: header)
    precondition(header.elementsEqual(bytes.prefix(MessageFrame.size)), "encoding gives other bytes")
  }
  return 0
}
