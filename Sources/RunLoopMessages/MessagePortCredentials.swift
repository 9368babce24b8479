// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort {
  /// The process at the other end, as the kernel recorded it when it connected or started listening (`SO_PEERCRED`).
  public struct Credentials: Hashable, Sendable {
    /// The process ID, or 0 if the process is in a PID namespace that is not visible to this process.
    public let process: Int32
    /// The effective user ID.
    public let user: UInt32
    /// The effective group ID.
    public let group: UInt32

    /// Creates credentials.
    public init(process: Int32, user: UInt32, group: UInt32) {
      self.process = process
      self.user = user
      self.group = group
    }

    /// Whether this is the calling process's effective user.
    ///
    /// In a user namespace that does not map all users, the kernel reports the unmapped ones by a single overflow user
    /// ID, usually 65534, which is never considered to be the same user. A process that runs as that user in such a
    /// namespace has to accept users by ID. The kind of namespace is read from `/proc/self/uid_map`; without /proc, it
    /// is assumed that not all users are mapped.
    public var isSameUser: Bool { UserID.isOwn(user) }

    init(of socket: Descriptor) throws(MessagePortError) {
      var answer = crl_credentials()
      do {
        _ = try SystemCall.socketOptionRead.make { crl_message_credentials(socket.number, &answer) }
      } catch { throw .system(error) }
      self.init(process: answer.process, user: answer.user, group: answer.group)
    }
  }
}

extension MessagePort.Credentials: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "process \(process) of user \(user), group \(group)" }
}
