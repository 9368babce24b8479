// SPDX-License-Identifier: Apache-2.0

/// Where a secured connection is in its life, as a value: each event is a mutating function, effects lie elsewhere.
struct TLSState: Hashable {
  enum Phase: Hashable {
    /// The ends agree on keys.
    case handshaking
    /// Bytes can pass.
    case open
    /// The first reason why nothing passes any more.
    case failed(TLSError.Cause)
  }

  // Flags and not the phase, which they make up: they are looked at for every record, and the cause has texts.

  /// Why nothing passes any more.
  private(set) var failure: TLSError.Cause?
  /// Whether nothing passes any more.
  private(set) var hasFailed = false
  /// Whether bytes can pass.
  private(set) var isOpen = false
  /// The handshake was done once, whatever has come after it.
  private(set) var hasShakenHands = false
  /// The peer has said that it writes no more.
  private(set) var hasEnded = false
  /// This end has said so.
  private(set) var hasEndedWriting = false
  /// This end wants no more: wherever the bytes of the peer end, nothing is missing.
  private var hasEndedReading = false

  var phase: Phase { failure.map { .failed($0) } ?? (isOpen ? .open : .handshaking) }

  /// Whether the ends have yet to agree on keys.
  @inline(__always)
  var isHandshaking: Bool { !hasShakenHands && !hasFailed }

  /// Whether bytes for the peer can be taken.
  @inline(__always)
  var writes: Bool { isOpen && !hasEndedWriting }

  /// Whether bytes of the peer may come.
  @inline(__always)
  var reads: Bool { isOpen && !hasEnded }

  /// The handshake is done.
  mutating func shookHands() {
    guard isHandshaking else { fatalError("a handshake is done in a connection that is \(phase)") }
    isOpen = true
    hasShakenHands = true
  }

  /// The peer says that it writes no more.
  mutating func peerClosed() {
    if isOpen { hasEnded = true } else { fail(.closedDuringHandshake) }
  }

  /// There will be no more bytes from the peer, whether it has said so or not.
  mutating func transportEnded() {
    if !isOpen {
      fail(.closedDuringHandshake)
    } else if hasEndedReading {
      hasEnded = true
    } else if !hasEnded {
      fail(.truncated)
    }
  }

  /// The reading side was ended by this end: what has arrived before is still read.
  mutating func endedReading() { hasEndedReading = true }

  mutating func fail(_ cause: TLSError.Cause) {
    guard !hasFailed else { return }
    failure = cause
    hasFailed = true
    isOpen = false
  }

  /// Nothing more is to be written; true if the peer is to be notified.
  mutating func endWriting() -> Bool {
    guard writes else { return false }
    hasEndedWriting = true
    return true
  }
}
