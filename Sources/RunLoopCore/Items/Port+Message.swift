// SPDX-License-Identifier: Apache-2.0

extension Port {
  /// A message that a port carries from a sender to a receiver.
  ///
  /// Within the process a message is moved: its parts arrive as the sender made them, and no payload is copied.
  public struct Message: Sendable {
    /// The sender's number for the kind of message.
    public var id: UInt32
    /// The message's parts, in order.
    public var components: [Component]
    /// The port at which the sender expects an answer, if it expects one.
    ///
    /// The message keeps this port alive while it waits. If the port is invalid by then, the answer cannot be sent:
    /// ``PortError/invalid``.
    public var replyPort: Port?

    /// Makes a message.
    public init(id: UInt32 = 0, components: [Component] = [], replyPort: Port? = nil) {
      self.id = id
      self.components = components
      self.replyPort = replyPort
    }

    /// Makes a message all of whose parts are bytes.
    ///
    /// The bytes are not copied.
    ///
    /// - Complexity: O(n) in the number of parts.
    @_disfavoredOverload
    public init(id: UInt32 = 0, components: [[UInt8]], replyPort: Port? = nil) {
      self.init(id: id, components: components.map(Component.bytes), replyPort: replyPort)
    }
  }
}

extension Port.Message {
  /// A part of a message.
  public enum Component: Sendable {
    /// Bytes.
    case bytes([UInt8])
    /// A port, for the receiver to send to.
    case port(Port)
    /// Any value or object that may cross threads.
    indirect case value(any Sendable)

    /// The bytes, if that is what the part is.
    public var bytes: [UInt8]? {
      if case .bytes(let bytes) = self { bytes } else { nil }
    }

    /// The port, if that is what the part is.
    public var port: Port? {
      if case .port(let port) = self { port } else { nil }
    }

    /// The value, if the part is one of this type.
    public func value<Value>(as type: Value.Type = Value.self) -> Value? {
      if case .value(let value) = self { value as? Value } else { nil }
    }
  }
}
