// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MessagePort.Local {
  /// Counts of a port's connections and messages.
  public struct Statistics: Hashable, Sendable {
    /// The number of accepted connections.
    public internal(set) var connectionCount = 0
    /// The number of connections rejected because of their process or user.
    package internal(set) var untrustedCount = 0
    /// The number of connections that were rejected or failed because of a limit or a lack of descriptors or memory.
    public internal(set) var rejectedConnectionCount = 0
    /// The number of messages that were completely received.
    public internal(set) var receivedCount = 0
    /// The number of replies that are in none of the other counts.
    public internal(set) var replyCount = 0
    /// The number of replies whose senders had closed the connection before or after the reply was made.
    public internal(set) var droppedReplyCount = 0
    /// The number of malformed packets, each of which has ended its connection.
    package internal(set) var malformedCount = 0
    /// The number of messages longer than the limit; their senders were notified.
    package internal(set) var oversizedCount = 0
    /// The number of messages for whose descriptors or payload there was no room; their senders were notified.
    package internal(set) var lackingResourceCount = 0
    /// The number of messages and replies rejected because of the quota of the sender, its user or the port.
    package internal(set) var overQuotaCount = 0
    /// The number of connections of other users that were closed because they sent no message.
    package internal(set) var silentCount = 0
    /// The number of connections that ended with a system error while reading.
    package internal(set) var failedReadCount = 0
    /// The number of replies that could not be sent because of a system error.
    package internal(set) var failedSendCount = 0
  }
}
