// SPDX-License-Identifier: Apache-2.0

extension MessagePort {
  /// How much a local port takes: in all, of each connection, and of each other user.
  ///
  /// A limit that is set to less than one is one. Bytes are counted in each direction: those of messages that were
  /// received and are not finished, and those of replies that their receivers have not taken. A reply that does not fit
  /// is dropped, and the sender of the request gets ``Rejection/quotaExceeded`` instead.
  public struct Limits: Hashable, Sendable {
    /// The longest message and reply, in bytes.
    public var messageSize: Int { didSet { messageSize = max(1, messageSize) } }
    /// How many senders may be connected.
    public var connections: Int { didSet { connections = max(1, connections) } }
    /// How many messages of one sender may have been received without being finished.
    ///
    /// Those are the requests that await their reply, the replies that the sender does not read, and the messages of
    /// ``Local/requests`` that nobody has taken. No more are read from this sender until one is finished: they wait in
    /// the kernel, and then the sender does.
    public var unfinishedMessages: Int { didSet { unfinishedMessages = max(1, unfinishedMessages) } }
    /// How many bytes of one connection there may be in each direction; by default 128 MiB.
    ///
    /// While there are so many in one direction, no more messages are read from the sender. At least one message and
    /// one reply of ``messageSize`` are possible.
    public var connectionBytes = 128 << 20 { didSet { connectionBytes = max(1, connectionBytes) } }
    /// How many bytes there may be in each direction in all; by default 1 GiB, and at least ``messageSize``.
    public var bytes = 1 << 30 { didSet { bytes = max(1, bytes) } }
    /// How many descriptors of messages and replies there may be in all; by default 4096.
    public var descriptors = 4096 { didSet { descriptors = max(1, descriptors) } }
    /// How much each user other than the port's own may use, if `accepts` takes that user's messages at all.
    public var otherUsers = UserLimits()

    /// Makes limits; each is at least one.
    public init(messageSize: Int = 64 << 20, connections: Int = 1024, unfinishedMessages: Int = 128) {
      self.messageSize = max(1, messageSize)
      self.connections = max(1, connections)
      self.unfinishedMessages = max(1, unfinishedMessages)
    }
  }

  /// How much one user other than the port's own may use of a port.
  ///
  /// With the defaults that is 32 MiB, 16 in each direction, and 128 descriptors, of which 64 are connections. The
  /// overflow user, who stands for all users without an id in this user namespace, is one such user.
  public struct UserLimits: Hashable, Sendable {
    /// How many connections; by default 64.
    public var connections = 64 { didSet { connections = max(1, connections) } }
    /// How many bytes in each direction; by default 16 MiB.
    ///
    /// A message or reply that does not fit is rejected.
    public var bytes = 16 << 20 { didSet { bytes = max(1, bytes) } }
    /// How many descriptors: of messages, of replies, and of memory that carries either; by default 64.
    ///
    /// An eighth of them, rounded down, are for connections that are rejected with descriptors in them, until they are
    /// closed.
    public var descriptors = 64 { didSet { descriptors = max(1, descriptors) } }
    /// How many of the descriptors are rejected connections.
    var rejected: Int { descriptors / 8 }
    /// Whether messages may bring descriptors; by default not: a connection on which one does is ended.
    public var takesDescriptors = false
    /// After how long a connection is ended that has not said anything since it was made; by default 30 seconds.
    public var silence: Duration = .seconds(30) { didSet { silence = max(.milliseconds(1), silence) } }

    /// Makes limits with the defaults.
    public init() {}
  }
}
