// SPDX-License-Identifier: Apache-2.0

/// Messages between processes, modeled on Core Foundation's `CFMessagePort`.
///
/// A ``Local`` port has a name and receives messages. A ``Remote`` port finds it by that name, in the same or another
/// process of the same user, and sends messages to it. A message consists of an ID, bytes, and open descriptors.
public enum MessagePort {}

extension MessagePort {
  /// The reply to a request.
  public struct Reply: Sendable {
    /// The payload of the reply.
    public var bytes: [UInt8]
    /// Open descriptors to pass with the reply, which are closed here after the reply was sent or dropped.
    public var descriptors: [Descriptor]

    /// Creates a reply.
    public init(_ bytes: [UInt8] = [], descriptors: [Descriptor] = []) {
      self.bytes = bytes
      self.descriptors = descriptors
    }
  }

  /// A one-way message that was not confirmed by the receiver.
  public struct Undelivered: Hashable, Sendable {
    /// The serial number that ``Remote/send(id:bytes:descriptors:sendTimeout:)`` returned.
    public let serial: UInt64
    /// The message's ID.
    public let id: Int32
    /// The reason, as far as it is known.
    public let reason: MessagePortError
  }
}
