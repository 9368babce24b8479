// SPDX-License-Identifier: Apache-2.0

/// A datagram that a task has received.
public struct Datagram: Hashable, Sendable {
  /// What arrived; less than was sent if it was cut off.
  public let bytes: [UInt8]
  /// Where it is from, and how long it was.
  public let envelope: Envelope

  /// What is known of a datagram beside its bytes.
  public struct Envelope: Hashable, Sendable {
    /// The sender's address, to which an answer can be sent; nil for a Unix socket that is not bound.
    public let sender: SocketAddress?
    /// How many bytes were sent.
    public let byteCount: Int
    /// Whether bytes are missing at the end, because there was no room for them (`MSG_TRUNC`).
    public let isTruncated: Bool
  }
}
