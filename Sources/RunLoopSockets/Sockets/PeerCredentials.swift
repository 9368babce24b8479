// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
public import RunLoopSystemEvents

/// The process at the other end of a Unix socket, as the kernel noted it when the connection was made (`SO_PEERCRED`).
public struct PeerCredentials: Sendable {
  /// The process's number; 0 if it is in a namespace that is not visible from here.
  ///
  /// The number may be reused for another process by now; ``reference`` never refers to another.
  public let process: Int32
  /// The effective user id.
  public let user: UInt32
  /// The effective group id.
  public let group: UInt32
  /// The process itself (`SO_PEERPIDFD`); nil if it has been reaped, or if the kernel, before Linux 6.5, does not
  /// report it.
  public let reference: ProcessReference?

  /// Whether this is the calling process's effective user; never true for the overflow user id of a user namespace that
  /// lacks ids for some users.
  public var isSameUser: Bool { UserID.isOwn(user) }

  init(of descriptor: OwnedDescriptor) throws(SystemError) {
    var process: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
    _ = try SystemCall.socketOptionRead.make {
      crl_socket_peer_credentials(descriptor.number, &process, &user, &group)
    }
    // A socket of TCP has no such peer: the kernel makes one up.
    guard process != 0 || user != .max else {
      throw SystemError(call: SystemCall.socketOptionRead.rawValue, number: EOPNOTSUPP)
    }
    (self.process, self.user, self.group) = (process, user, group)
    do throws(SystemError) {
      let number = try SystemCall.socketOptionRead.make { crl_socket_peer_process(descriptor.number) }
      reference = ProcessReference(OwnedDescriptor(number), process: process > 0 ? process : nil)
    } catch {
      guard [ESRCH, ENODATA, EINVAL, ENOPROTOOPT].contains(error.number) else { throw error }
      reference = nil
    }
  }
}
