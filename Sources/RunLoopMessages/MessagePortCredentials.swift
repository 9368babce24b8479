// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort {
  /// Who is at the other end, as the kernel says (`SO_PEERCRED`): who connected, or who listened, at that time.
  public struct Credentials: Hashable, Sendable {
    /// The process's id; 0 if it is in a namespace that is not visible from here.
    public let process: Int32
    /// The effective user id.
    public let user: UInt32
    /// The effective group id.
    public let group: UInt32

    /// Makes a value.
    public init(process: Int32, user: UInt32, group: UInt32) {
      self.process = process
      self.user = user
      self.group = group
    }

    /// Whether this is the calling process's effective user.
    ///
    /// In a user namespace that lacks ids for some users, the kernel reports all of them by one id, the overflow user
    /// id (65534, as a rule): no process is taken for the same user by that id. A process that runs as that user in
    /// such a namespace has to name the users it accepts. `/proc/self/uid_map` says what kind of namespace it is;
    /// without /proc it is assumed to lack ids.
    public var isSameUser: Bool { UserID.isOwn(user) }

    /// Asks the kernel who is at the other end of a socket.
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
  /// The text for a person.
  public var description: String { "process \(process) of user \(user), group \(group)" }
}
