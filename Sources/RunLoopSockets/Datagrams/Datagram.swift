// SPDX-License-Identifier: Apache-2.0

/// A datagram that a task has received.
public struct Datagram: Hashable, Sendable {
  /// The bytes that arrived; fewer than were sent if the datagram was cut off.
  public let bytes: [UInt8]
  /// The sender and the original length.
  public let envelope: Envelope

  /// The information about a datagram besides its bytes.
  public struct Envelope: Hashable, Sendable {
    /// The sender's address, to which an answer can be sent; nil for a Unix socket that is not bound.
    public let sender: SocketAddress?
    /// How many bytes were sent.
    public let byteCount: Int
    /// Whether bytes are missing at the end, because there was no room for them (`MSG_TRUNC`).
    public let isTruncated: Bool
  }
}
