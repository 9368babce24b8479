// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
public import RunLoopSystemEvents

/// The process at the other end of a Unix socket, as recorded by the kernel when it connected (`SO_PEERCRED`).
public struct PeerCredentials: Sendable {
  /// The process ID, or 0 if the process is in a PID namespace that is not visible to this process.
  ///
  /// The ID may have been reused by another process since then. ``reference`` always refers to the original process.
  public let process: Int32
  /// The effective user ID.
  public let user: UInt32
  /// The effective group ID.
  public let group: UInt32
  /// A reference to the process itself (`SO_PEERPIDFD`), or `nil` if it has been reaped or if the kernel is older
  /// than Linux 6.5, which introduced the option.
  public let reference: ProcessReference?

  /// Whether the peer has the calling process's effective user; never true for the overflow user ID of a user namespace
  /// that does not map all users.
  public var isSameUser: Bool { UserID.isOwn(user) }

  init(of descriptor: OwnedDescriptor) throws(SystemError) {
    var process: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
    _ = try SystemCall.socketOptionRead.make {
      crl_socket_peer_credentials(descriptor.number, &process, &user, &group)
    }
    // A TCP socket has no peer credentials; the kernel returns placeholder values.
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
