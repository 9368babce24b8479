// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MessagePort.Local {
  /// What has arrived at a port so far.
  public struct Statistics: Hashable, Sendable {
    /// The connections that were taken.
    public internal(set) var connectionCount = 0
    /// The connections that were rejected because of their process or user.
    package internal(set) var untrustedCount = 0
    /// The connections that were rejected or failed for want of descriptors, memory, or by the limit.
    public internal(set) var rejectedConnectionCount = 0
    /// The messages that were received whole.
    public internal(set) var receivedCount = 0
    /// The replies that were given, and are in none of the other counts.
    public internal(set) var replyCount = 0
    /// The replies whose senders were gone, before or after they were given.
    public internal(set) var droppedReplyCount = 0
    /// The packets that were no messages; each has ended its connection.
    package internal(set) var malformedCount = 0
    /// The messages that were longer than the limit; their senders were notified.
    package internal(set) var oversizedCount = 0
    /// The messages whose descriptors or payload there was no room for; their senders were notified.
    package internal(set) var lackingResourceCount = 0
    /// The messages and replies that were rejected because the sender, its user, or all together used what they may.
    package internal(set) var overQuotaCount = 0
    /// The connections of other users that were ended because they said nothing.
    package internal(set) var silentCount = 0
    /// The connections that ended by an error of the system's in reading.
    package internal(set) var failedReadCount = 0
    /// The replies that the system did not send.
    package internal(set) var failedSendCount = 0
  }
}
