// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A name held by this process: the lock file, and the socket that listens under the name.
///
/// The lock file shows whether the port is alive, because the kernel releases the lock when the process ends. Only the
/// holder of the lock removes the socket file of a dead process, so that the file of a live one cannot be taken over.
/// A child forked without exec has copies of both descriptors. It removes no files and accepts no connections, but if
/// the parent dies first, the name stays taken until the child releases the port or ends.
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

  deinit {
    // In a forked child, the files belong to the parent.
    guard !generation.isPast else { return }
    // Remove these while the lock is held; the next holder creates both again.
    Self.remove(name, in: directory)
    Self.remove(name + ".lock", in: directory)
  }

  private static func remove(_ name: String, in directory: OwnedDescriptor) {
    _ = try? SystemCall.unlink.make { crl_message_unlink(directory.number, name) }
  }

  /// Locks the lock file, making sure that the locked file still has this name afterwards.
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

  /// Returns whether a name refers to this open file, which a previous holder may have removed in the meantime.
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

  /// Listens under the name, replacing any file left there.
  private static func listen(
    _ name: String, in directory: OwnedDescriptor, mode: UInt32
  ) throws(SystemError) -> MessagePort.Descriptor {
    do throws(SystemError) {
      _ = try SystemCall.unlink.make { crl_message_unlink(directory.number, name) }
    } catch {
      guard error.number == ENOENT else { throw error }
    }
    let socket = MessagePort.Descriptor(owning: try SystemCall.socket.make { crl_message_socket() }, .listener)
    // The file gets the socket's permissions, minus those in the process's `umask`.
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

  /// Restores the permissions that the process's `umask` has removed from the socket's file, before any process can
  /// connect to it.
  private static func widen(
    _ name: String, in directory: OwnedDescriptor, to mode: UInt32
  ) throws(SystemError) {
    let file = MessagePort.Descriptor(
      owning: try SystemCall.openFile.makeUninterrupted { crl_file_find(directory.number, name, 0, 0) })
    var status = crl_file_status()
    _ = try SystemCall.fileStatus.make { crl_status_of(file.number, &status) }
    // Only this user can have put another file there.
    guard status.mode & S_IFMT == S_IFSOCK, status.user == geteuid() else {
      throw SystemError(call: SystemCall.bind.rawValue, number: EADDRINUSE)
    }
    guard status.mode & 0o777 != mode else { return }
    _ = try SystemCall.changeMode.make { crl_placed_set_mode(file.number, directory.number, name, mode) }
  }
}
