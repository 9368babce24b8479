// SPDX-License-Identifier: Apache-2.0

/// What is to be written to a terminal, and how far that is, as a value: one frame, and answers behind it.
///
/// No further frame is taken before all of it is written, so that a terminal that does not read costs the memory of
/// one.
struct OutputState: Hashable, Sendable {
  /// What comes of a write.
  enum Action: Hashable, Sendable {
    /// Write on, from ``next``.
    case write
    /// Wait until there is room.
    case wait
    /// All was written.
    case finish
    /// The terminal has gone.
    case hangUp
  }

  /// What is to be written, and was.
  private(set) var bytes: ContiguousArray<UInt8> = []
  /// How much of it was.
  private(set) var written = 0

  /// Whether all was written: there is room for a frame.
  var isIdle: Bool { written == bytes.count }

  /// The first byte that was not written, and how many there are.
  var next: Range<Int> { written..<bytes.count }

  /// Lets a closure append bytes: a frame where all was written, or what has to follow it.
  mutating func append<R>(_ body: (inout ContiguousArray<UInt8>) -> R) -> R {
    // What was written takes no room any more; the memory of a frame is that of the next.
    if isIdle { bytes.removeAll(keepingCapacity: true) } else { bytes.removeSubrange(..<written) }
    written = 0
    return body(&bytes)
  }

  /// The system has taken so many bytes, or says by a negative number why not.
  mutating func note(_ result: Int, wouldBlock: Int) -> Action {
    guard result > 0 else { return result == 0 || result == wouldBlock ? .wait : .hangUp }
    written = min(bytes.count, written + result)
    return isIdle ? .finish : .write
  }

  /// What was not written is not to be: the screen will be shown anew.
  mutating func discard() {
    bytes.removeAll(keepingCapacity: true)
    written = 0
  }
}
