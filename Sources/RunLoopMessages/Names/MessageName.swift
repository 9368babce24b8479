// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A name that this process holds: the lock beside the socket's file, and the socket that listens there.
///
/// A lock file says whether the port lives, since the kernel gives its lock up with the process; so the socket file of
/// a dead process is removed by whoever has the lock, and nobody can take the file of a living one. A child that is
/// forked without exec has copies of both open: it removes nothing and answers nobody, but a parent that dies before it
/// leaves the name taken until the child has let go of the port, or ends.
final class MessageName: Sendable {
  let listener: MessagePort.Descriptor
  private let name: String
  private let directory: OwnedDescriptor
  private let lockFile: MessagePort.Descriptor
  private let generation = ForkGeneration.current

  init(_ name: String, in place: MessagePort.Directory) throws(MessagePortError) {
    try place.check(name)
    self.name = name
    directory = try place.open(making: true)
    lockFile = try Self.lock(name, in: directory)
    do throws(SystemError) {
      listener = try Self.listen(name, in: directory, mode: place.isShared ? 0o666 : 0o600)
    } catch {
      Self.remove(name + ".lock", in: directory)
      throw .system(error)
    }
  }

  /// Gives the name up.
  deinit {
    // The files are the parent's.
    guard !generation.isPast else { return }
    // While the lock is held: the next to have it makes both anew.
    Self.remove(name, in: directory)
    Self.remove(name + ".lock", in: directory)
  }

  private static func remove(_ name: String, in directory: OwnedDescriptor) {
    _ = try? SystemCall.unlink.make { crl_message_unlink(directory.number, name) }
  }

  /// Takes the lock, on the file that has this name still when the lock is taken.
  private static func lock(
    _ name: String, in directory: OwnedDescriptor
  ) throws(MessagePortError) -> MessagePort.Descriptor {
    let path = name + ".lock"
    do throws(SystemError) {
      while true {
        let file = MessagePort.Descriptor(
          owning: try SystemCall.openFile.makeUninterrupted { crl_message_open_lock(directory.number, path) })
        do throws(SystemError) {
          _ = try SystemCall.lockFile.makeUninterrupted { crl_message_lock(file.number) }
        } catch {
          guard error.number == EWOULDBLOCK else { throw error }
          throw SystemError(call: error.call, number: EADDRINUSE)
        }
        if try isFile(file, at: path, in: directory) { return file }
      }
    } catch {
      throw error.number == EADDRINUSE ? .nameInUse(name) : .system(error)
    }
  }

  /// Whether a name leads to this open file; not if who had it before has removed it meanwhile.
  private static func isFile(
    _ file: MessagePort.Descriptor, at name: String, in directory: OwnedDescriptor
  ) throws(SystemError) -> Bool {
    var ours = crl_file_status()
    var there = crl_file_status()
    _ = try SystemCall.fileStatus.make { crl_status_of(file.number, &ours) }
    do throws(SystemError) {
      _ = try SystemCall.fileStatus.make { crl_status_at(directory.number, name, &there) }
    } catch {
      guard error.number == ENOENT else { throw error }
      return false
    }
    return ours.device == there.device && ours.inode == there.inode
  }

  /// Listens under a name that is ours, whatever was left there.
  private static func listen(
    _ name: String, in directory: OwnedDescriptor, mode: UInt32
  ) throws(SystemError) -> MessagePort.Descriptor {
    do throws(SystemError) {
      _ = try SystemCall.unlink.make { crl_message_unlink(directory.number, name) }
    } catch {
      guard error.number == ENOENT else { throw error }
    }
    let socket = MessagePort.Descriptor(owning: try SystemCall.socket.make { crl_message_socket() }, .listener)
    // The file gets the socket's permissions, without those of the process's mask.
    _ = try SystemCall.descriptorMode.make { crl_message_set_mode(socket.number, mode) }
    _ = try SystemCall.bind.make { crl_placed_bind(socket.number, directory.number, name) }
    do throws(SystemError) {
      try widen(name, in: directory, to: mode)
      _ = try SystemCall.listen.make { crl_message_listen(socket.number) }
    } catch {
      remove(name, in: directory)
      throw error
    }
    return socket
  }

  /// Gives the socket's file the permissions that the process's mask took from it; nobody can connect before it
  /// listens.
  private static func widen(
    _ name: String, in directory: OwnedDescriptor, to mode: UInt32
  ) throws(SystemError) {
    let file = MessagePort.Descriptor(
      owning: try SystemCall.openFile.makeUninterrupted { crl_file_find(directory.number, name, 0, 0) })
    var status = crl_file_status()
    _ = try SystemCall.fileStatus.make { crl_status_of(file.number, &status) }
    // Only this user can have put anything else there.
    guard status.mode & S_IFMT == S_IFSOCK, status.user == geteuid() else {
      throw SystemError(call: SystemCall.bind.rawValue, number: EADDRINUSE)
    }
    guard status.mode & 0o777 != mode else { return }
    _ = try SystemCall.changeMode.make { crl_placed_set_mode(file.number, directory.number, name, mode) }
  }
}
