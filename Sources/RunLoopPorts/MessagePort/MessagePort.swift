/// Messages between processes, as Core Foundation's `CFMessagePort` has them.
///
/// A ``Local`` port has a name and receives; a ``Remote`` port finds it by that name, in this or another process of the same
/// user, and sends. Messages carry an id, bytes, and open descriptors.
public enum MessagePort {}

extension MessagePort {
  /// How much a local port takes.
  public struct Limits: Hashable, Sendable {
    /// The longest message and reply, in bytes.
    public var messageSize: Int
    /// How many senders may be connected.
    public var connections: Int
    /// How many messages of one sender may have been received without being finished.
    ///
    /// Those are the requests that await their reply, the replies that the sender does not read, and the messages of
    /// ``Local/requests`` that nobody has taken. No more are read from this sender until one is finished: they wait in the
    /// kernel, and then the sender does.
    public var unfinishedMessages: Int

    /// Makes limits; each is at least one.
    public init(messageSize: Int = 64 << 20, connections: Int = 1024, unfinishedMessages: Int = 128) {
      self.messageSize = max(1, messageSize)
      self.connections = max(1, connections)
      self.unfinishedMessages = max(1, unfinishedMessages)
    }
  }

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
    /// What ``Remote/send(id:bytes:descriptors:sendTimeout:)`` gave.
    public let serial: UInt64
    /// The message's id.
    public let id: Int32
    /// What is known of why.
    public let reason: MessagePortError
  }
}
