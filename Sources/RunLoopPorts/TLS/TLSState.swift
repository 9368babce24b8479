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

  private(set) var phase = Phase.handshaking
  /// The handshake was done once, whatever has come after it.
  private(set) var hasShakenHands = false
  /// The peer has said that it writes no more.
  private(set) var hasEnded = false
  /// This end has said so.
  private(set) var hasEndedWriting = false

  /// Whether bytes for the peer can be taken.
  var writes: Bool { phase == .open && !hasEndedWriting }

  /// Whether bytes of the peer may come.
  var reads: Bool { phase == .open && !hasEnded }

  /// Why nothing passes any more.
  var failure: TLSError.Cause? { if case .failed(let cause) = phase { cause } else { nil } }

  /// The handshake is done.
  mutating func shookHands() {
    guard phase == .handshaking else { fatalError("a handshake is done in a connection that is \(phase)") }
    phase = .open
    hasShakenHands = true
  }

  /// The peer says that it writes no more.
  mutating func peerClosed() {
    switch phase {
    case .handshaking: phase = .failed(.closedDuringHandshake)
    case .open: hasEnded = true
    case .failed: break
    }
  }

  /// There will be no more bytes from the peer, whether it has said so or not.
  mutating func transportEnded() {
    switch phase {
    case .handshaking: phase = .failed(.closedDuringHandshake)
    case .open: if !hasEnded { phase = .failed(.truncated) }
    case .failed: break
    }
  }

  /// The reading side was ended by this end: nothing is missing that was wanted.
  mutating func endedReading() { if phase == .open { hasEnded = true } }

  mutating func fail(_ cause: TLSError.Cause) { if failure == nil { phase = .failed(cause) } }

  /// Nothing more is to be written; true if the peer is to be notified.
  mutating func endWriting() -> Bool {
    guard writes else { return false }
    hasEndedWriting = true
    return true
  }
}
