// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer: terminal input, split at a position given by the first byte.
///
/// The events must not depend on the position. At most the longest paste may be buffered, and after CAN, or the end
/// of a paste, a letter must be a key.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  guard let first = bytes.first else { return 0 }
  let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
  var whole = InputParser(pasteLimit: 32)
  var events: [ParsedInput] = []
  whole.parse(rest) { events.append($0) }
  var split = InputParser(pasteLimit: 32)
  var others: [ParsedInput] = []
  let step = Int(first) % 7 + 1
  var index = 0
  while index < rest.count {
    let end = min(rest.count, index + step)
    split.parse(UnsafeRawBufferPointer(rebasing: rest[index..<end])) { others.append($0) }
    precondition(split.text.count <= 64, "more is kept than the longest paste and string")
    index = end
  }
  precondition(events == others, "split by \(step) they are others")
  precondition(whole.wait == split.wait)
  if first & 0x80 != 0 { for _ in 0..<3 { whole.flush { events.append($0) } } }
  var last: [ParsedInput] = []
  Array("\u{1B}[201~\u{18}\u{18}x".utf8).withUnsafeBytes { whole.parse($0) { last.append($0) } }
  precondition(last.last == .event(.key(KeyEvent(.character("x")))), "a letter is no key")
  return 0
}
