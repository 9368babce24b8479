// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MessagePort.Local {
  /// What has arrived at a port so far.
  public struct Statistics: Hashable, Sendable {
    /// The connections that were taken.
    public internal(set) var connections = 0
    /// The connections that were rejected because of their process or user.
    public internal(set) var untrusted = 0
    /// The connections that were rejected or failed for want of descriptors, memory, or by the limit.
    public internal(set) var rejectedConnections = 0
    /// The messages that were received whole.
    public internal(set) var received = 0
    /// The replies that were given.
    public internal(set) var replies = 0
    /// The replies whose senders were gone.
    public internal(set) var droppedReplies = 0
    /// The packets that were no messages; each has ended its connection.
    public internal(set) var malformed = 0
    /// The messages that were longer than the limit; their senders were notified.
    public internal(set) var oversized = 0
    /// The messages whose descriptors or payload there was no room for; their senders were notified.
    public internal(set) var lackingResources = 0
    /// The messages and replies that were rejected because the sender, its user, or all together used what they may.
    public internal(set) var overQuota = 0
    /// The connections of other users that were ended because they said nothing.
    public internal(set) var silent = 0
    /// The connections that ended by an error of the system's in reading.
    public internal(set) var failedReads = 0
    /// The replies that the system did not send.
    public internal(set) var failedSends = 0
  }
}
