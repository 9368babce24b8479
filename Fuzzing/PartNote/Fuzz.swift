// SPDX-License-Identifier: Apache-2.0

/// What libFuzzer calls with bytes of its own.
///
/// Whatever is in `NAME.part.json`: it is rejected, or it is a note that is the same when it was written and read
/// again.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  guard let text = String(validating: bytes, as: UTF8.self), let note = PartNote(text: text) else { return 0 }
  precondition(note.total >= 0, "a length below zero")
  precondition(PartNote(text: note.text) == note, "a note that is another when it is read again")
  precondition(!note.text.dropLast().unicodeScalars.contains { $0.value < 0x20 }, "a note of several lines")
  return 0
}
