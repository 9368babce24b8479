// SPDX-License-Identifier: Apache-2.0

extension MessagePort {
  /// How much a local port takes: in all, of each connection, and of each other user.
  ///
  /// A limit that is set to less than one is one. Bytes are counted in each direction: those of messages that were
  /// received and are not finished, and those of replies that their receivers have not taken. A reply that does not fit
  /// is dropped, and the sender of the request gets ``Rejection/quotaExceeded`` instead.
  public struct Limits: Hashable, Sendable {
    /// The longest message and reply, in bytes.
    public var maximumMessageSize: Int { didSet { maximumMessageSize = max(1, maximumMessageSize) } }
    /// How many senders may be connected.
    public var maximumConnectionCount: Int { didSet { maximumConnectionCount = max(1, maximumConnectionCount) } }
    /// How many messages of one sender may have been received without being finished.
    ///
    /// Those are the requests that await their reply, the replies that the sender does not read, and the messages of
    /// ``Local/requests`` that nobody has taken. No more are read from this sender until one is finished: they wait in
    /// the kernel, and then the sender does.
    public var maximumUnfinishedMessageCount: Int {
      didSet { maximumUnfinishedMessageCount = max(1, maximumUnfinishedMessageCount) }
    }
    /// How many bytes of one connection there may be in each direction; by default 128 MiB.
    ///
    /// While there are so many in one direction, no more messages are read from the sender. At least one message and
    /// one reply of ``maximumMessageSize`` are possible.
    package var connectionBytes = 128 << 20 { didSet { connectionBytes = max(1, connectionBytes) } }
    /// How many bytes there may be in each direction in all; by default 1 GiB, and at least ``maximumMessageSize``.
    public var maximumByteCount = 1 << 30 { didSet { maximumByteCount = max(1, maximumByteCount) } }
    /// How many descriptors of messages and replies there may be in all; by default 4096.
    package var descriptors = 4096 { didSet { descriptors = max(1, descriptors) } }
    /// Whether messages of other users may bring descriptors; by default not: a connection on which one does is ended.
    public var takesDescriptorsOfOtherUsers = false
    /// How much each user other than the port's own may use, if `accepts` takes that user's messages at all.
    package var otherUsers = UserLimits()

    /// Makes limits; each is at least one.
    public init(
      maximumMessageSize: Int = 64 << 20, maximumConnectionCount: Int = 1024, maximumUnfinishedMessageCount: Int = 128
    ) {
      self.maximumMessageSize = max(1, maximumMessageSize)
      self.maximumConnectionCount = max(1, maximumConnectionCount)
      self.maximumUnfinishedMessageCount = max(1, maximumUnfinishedMessageCount)
    }
  }

  /// How much one user other than the port's own may use of a port.
  ///
  /// With the defaults that is 32 MiB, 16 in each direction, and 128 descriptors, of which 64 are connections. The
  /// overflow user, who stands for all users without an id in this user namespace, is one such user.
  package struct UserLimits: Hashable, Sendable {
    /// How many connections; by default 64.
    package var connections = 64 { didSet { connections = max(1, connections) } }
    /// How many bytes in each direction; by default 16 MiB.
    ///
    /// A message or reply that does not fit is rejected.
    package var bytes = 16 << 20 { didSet { bytes = max(1, bytes) } }
    /// How many descriptors: of messages, of replies, and of memory that carries either; by default 64.
    ///
    /// An eighth of them, rounded down, are for connections that are rejected with descriptors in them, until they are
    /// closed.
    package var descriptors = 64 { didSet { descriptors = max(1, descriptors) } }
    /// How many of the descriptors are rejected connections.
    var rejected: Int { descriptors / 8 }
    /// After how long a connection is ended that has not said anything since it was made; by default 30 seconds.
    package var silence: Duration = .seconds(30) { didSet { silence = max(.milliseconds(1), silence) } }
  }
}
