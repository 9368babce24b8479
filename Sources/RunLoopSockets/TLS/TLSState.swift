// SPDX-License-Identifier: Apache-2.0

/// The state machine of a TLS connection, as a value: each event is a mutating function, and effects are implemented
/// elsewhere.
struct TLSState: Hashable {
  enum Phase: Hashable {
    case handshaking
    case open
    case failed(TLSError.Cause)
  }

  // Flags instead of the phase, because they are read for every record, and a cause may contain strings.

  private(set) var failure: TLSError.Cause?
  private(set) var hasFailed = false
  private(set) var isOpen = false
  /// Whether the handshake was completed, even if the connection has failed since.
  private(set) var hasShakenHands = false
  /// Whether the peer has announced that it will write no more.
  private(set) var hasEnded = false
  /// Whether this end has announced that it will write no more.
  private(set) var hasEndedWriting = false
  /// Whether this end reads no more, in which case the input may end anywhere.
  private var hasEndedReading = false

  var phase: Phase { failure.map { .failed($0) } ?? (isOpen ? .open : .handshaking) }

  @inline(__always)
  var isHandshaking: Bool { !hasShakenHands && !hasFailed }

  /// Whether plain bytes can be written.
  @inline(__always)
  var writes: Bool { isOpen && !hasEndedWriting }

  /// Whether plain bytes can be read.
  @inline(__always)
  var reads: Bool { isOpen && !hasEnded }

  mutating func shookHands() {
    guard isHandshaking else { fatalError("a handshake is done in a connection that is \(phase)") }
    isOpen = true
    hasShakenHands = true
  }

  mutating func peerClosed() {
    if isOpen { hasEnded = true } else { fail(.closedDuringHandshake) }
  }

  /// Records the end of the input, whether or not the peer has announced it.
  mutating func transportEnded() {
    if !isOpen {
      fail(.closedDuringHandshake)
    } else if hasEndedReading {
      hasEnded = true
    } else if !hasEnded {
      fail(.truncated)
    }
  }

  /// Records that this end reads no more; bytes that have already arrived can still be read.
  mutating func endedReading() { hasEndedReading = true }

  mutating func fail(_ cause: TLSError.Cause) {
    guard !hasFailed else { return }
    failure = cause
    hasFailed = true
    isOpen = false
  }

  /// Ends writing, and returns whether the peer must be notified.
  mutating func endWriting() -> Bool {
    guard writes else { return false }
    hasEndedWriting = true
    return true
  }
}
