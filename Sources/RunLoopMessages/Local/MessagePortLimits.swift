// SPDX-License-Identifier: Apache-2.0

extension MessagePort {
  /// The limits of a local port: in total, per connection, and per other user.
  ///
  /// A limit below one is raised to one. Bytes are counted separately in each direction: those of received but
  /// unfinished messages, and those of replies that their receivers have not read. A reply that exceeds a limit is
  /// dropped, and the sender of the request gets ``Rejection/quotaExceeded`` instead.
  public struct Limits: Hashable, Sendable {
    /// The maximum size of a message or reply in bytes; the default is 64 MiB.
    public var maximumMessageSize: Int { didSet { maximumMessageSize = max(1, maximumMessageSize) } }
    /// The maximum number of connections; the default is 1024.
    public var maximumConnectionCount: Int { didSet { maximumConnectionCount = max(1, maximumConnectionCount) } }
    /// The maximum number of unfinished messages per sender; the default is 128.
    ///
    /// These are the requests without a reply, the replies that the sender has not read, and the messages that no task
    /// has taken from ``Local/requests``. At the limit, no more are read from this sender until one is finished: they
    /// wait in the kernel, and then the sender waits.
    public var maximumUnfinishedMessageCount: Int {
      didSet { maximumUnfinishedMessageCount = max(1, maximumUnfinishedMessageCount) }
    }
    /// The number of bytes per connection and direction above which no more messages are read.
    ///
    /// The default is 128 MiB. At least one message and one reply of ``maximumMessageSize`` are always possible.
    package var connectionBytes = 128 << 20 { didSet { connectionBytes = max(1, connectionBytes) } }
    /// The maximum number of bytes per direction in total, at least ``maximumMessageSize``; the default is 1 GiB.
    public var maximumByteCount = 1 << 30 { didSet { maximumByteCount = max(1, maximumByteCount) } }
    /// The maximum number of descriptors of messages and replies in total; the default is 4096.
    package var descriptors = 4096 { didSet { descriptors = max(1, descriptors) } }
    /// Whether other users may send descriptors without their connection being closed; the default is false.
    public var takesDescriptorsOfOtherUsers = false
    /// The limits for each user other than the port's own, if `accepts` admits that user at all.
    package var otherUsers = UserLimits()

    /// Creates limits, each of which is at least one.
    public init(
      maximumMessageSize: Int = 64 << 20, maximumConnectionCount: Int = 1024, maximumUnfinishedMessageCount: Int = 128
    ) {
      self.maximumMessageSize = max(1, maximumMessageSize)
      self.maximumConnectionCount = max(1, maximumConnectionCount)
      self.maximumUnfinishedMessageCount = max(1, maximumUnfinishedMessageCount)
    }
  }

  /// The limits for each user other than the port's own.
  ///
  /// The defaults allow 32 MiB, half of it in each direction, and 128 descriptors, of which 64 are connections. The
  /// overflow UID, which stands for all users that are not mapped in this user namespace, counts as one such user.
  package struct UserLimits: Hashable, Sendable {
    /// The maximum number of connections; the default is 64.
    package var connections = 64 { didSet { connections = max(1, connections) } }
    /// The maximum number of bytes in each direction, beyond which a message or reply is rejected; the default is 16
    /// MiB.
    package var bytes = 16 << 20 { didSet { bytes = max(1, bytes) } }
    /// The maximum number of descriptors of messages, of replies, and of memory that carries either; the default is 64.
    ///
    /// An eighth of them, rounded down, is reserved for rejected connections that contain descriptors, until they are
    /// closed.
    package var descriptors = 64 { didSet { descriptors = max(1, descriptors) } }
    /// The number of descriptors reserved for rejected connections.
    var rejected: Int { descriptors / 8 }
    /// The time after which a connection that has not sent a message is closed; the default is 30 seconds.
    package var silence: Duration = .seconds(30) { didSet { silence = max(.milliseconds(1), silence) } }
  }
}
