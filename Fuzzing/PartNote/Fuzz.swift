// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer.
///
/// The contents of `NAME.part.json` must be rejected, or be a note that is unchanged after writing and reading it.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  guard let text = String(validating: bytes, as: UTF8.self), let note = PartNote(text: text) else { return 0 }
  precondition(note.total >= 0, "a length below zero")
  precondition(PartNote(text: note.text) == note, "a note that is another when it is read again")
  precondition(!note.text.dropLast().unicodeScalars.contains { $0.value < 0x20 }, "a note of several lines")
  return 0
}
