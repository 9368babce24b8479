// SPDX-License-Identifier: Apache-2.0

/// The pending output of a terminal, and how much of it has been written: one frame, followed by replies.
///
/// The next frame is accepted only when all output has been written, so a terminal that does not read costs the memory
/// of one frame.
struct OutputState: Hashable, Sendable {
  /// The action that follows a write.
  enum Action: Hashable, Sendable {
    /// Continue writing at ``next``.
    case write
    /// Wait until there is room.
    case wait
    /// All output has been written.
    case finish
    /// The terminal was disconnected.
    case hangUp
  }

  /// The output, including the part that has been written.
  private(set) var bytes: ContiguousArray<UInt8> = []
  private(set) var written = 0

  /// Whether all output has been written, so that there is room for a frame.
  var isIdle: Bool { written == bytes.count }

  /// The range of bytes that have not been written.
  var next: Range<Int> { written..<bytes.count }

  /// Appends output with a closure: a frame if all output has been written, or bytes that follow the current output.
  mutating func append<R>(_ body: (inout ContiguousArray<UInt8>) -> R) -> R {
    // Output that has been written is removed, and the memory of a frame is reused for the next.
    if isIdle { bytes.removeAll(keepingCapacity: true) } else { bytes.removeSubrange(..<written) }
    written = 0
    return body(&bytes)
  }

  /// Records the result of a write: a number of bytes, or a negative error number.
  mutating func note(_ result: Int, wouldBlock: Int) -> Action {
    guard result > 0 else { return result == 0 || result == wouldBlock ? .wait : .hangUp }
    written = min(bytes.count, written + result)
    return isIdle ? .finish : .write
  }

  /// Discards the remaining output, because the screen will be written again.
  mutating func discard() {
    bytes.removeAll(keepingCapacity: true)
    written = 0
  }
}
