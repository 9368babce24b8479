// SPDX-License-Identifier: Apache-2.0

extension Port {
  /// A message sent through a port.
  ///
  /// Within a process, a message is moved: its components arrive as the sender created them, and no payload is copied.
  public struct Message: Sendable {
    /// The message's kind, as chosen by the sender.
    public var id: UInt32
    /// The message's components, in order.
    public var components: [Component]
    /// The port to which the receiver should reply, or `nil` if no reply is expected.
    ///
    /// A queued message keeps this port alive. If the port is invalid by then, sending the reply throws
    /// ``PortError/invalid``.
    public var replyPort: Port?

    /// Creates a message, by default with the id 0, no components and no reply port.
    public init(id: UInt32 = 0, components: [Component] = [], replyPort: Port? = nil) {
      self.id = id
      self.components = components
      self.replyPort = replyPort
    }

    /// Creates a message whose components are all bytes, without copying them.
    ///
    /// - Complexity: O(n) in the number of components.
    @_disfavoredOverload
    public init(id: UInt32 = 0, components: [[UInt8]], replyPort: Port? = nil) {
      self.init(id: id, components: components.map(Component.bytes), replyPort: replyPort)
    }
  }
}

extension Port.Message {
  /// A component of a message.
  public enum Component: Sendable {
    /// A buffer of bytes.
    case bytes([UInt8])
    /// A port to which the receiver can send messages.
    case port(Port)
    /// Any sendable value or object.
    indirect case value(any Sendable)

    /// The component's bytes, or `nil` if it contains something else.
    public var bytes: [UInt8]? {
      if case .bytes(let bytes) = self { bytes } else { nil }
    }

    /// The component's port, or `nil` if it contains something else.
    public var port: Port? {
      if case .port(let port) = self { port } else { nil }
    }

    /// Returns the component's value, or `nil` if it contains something else or a value of another type.
    public func value<Value>(as type: Value.Type = Value.self) -> Value? {
      if case .value(let value) = self { value as? Value } else { nil }
    }
  }
}
