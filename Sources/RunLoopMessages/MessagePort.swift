// SPDX-License-Identifier: Apache-2.0

/// Messages between processes, as Core Foundation's `CFMessagePort` has them.
///
/// A ``Local`` port has a name and receives; a ``Remote`` port finds it by that name, in this or another process of the
/// same user, and sends. Messages carry an id, bytes, and open descriptors.
public enum MessagePort {}

extension MessagePort {
  /// The answer to a request.
  public struct Reply: Sendable {
    /// The bytes.
    public var bytes: [UInt8]
    /// Open descriptors, which go with the reply: they are closed here when it has been sent or dropped.
    public var descriptors: [Descriptor]

    /// Makes an answer.
    public init(_ bytes: [UInt8] = [], descriptors: [Descriptor] = []) {
      self.bytes = bytes
      self.descriptors = descriptors
    }
  }

  /// A one-way message that was not confirmed to have been received.
  public struct Undelivered: Hashable, Sendable {
    /// What ``Remote/send(id:bytes:descriptors:sendTimeout:)`` returned.
    public let serial: UInt64
    /// The message's id.
    public let id: Int32
    /// What is known of why.
    public let reason: MessagePortError
  }
}
