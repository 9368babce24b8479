import CRunLoopSystem
import Glibc
import RunLoopCore

/// A name that this process holds: the lock beside the socket's file, and the socket that listens there.
///
/// A lock file says whether the port lives, since the kernel gives its lock up with the process; so the socket file of a dead
/// process is removed by whoever has the lock, and nobody can take the file of a living one. A child that is forked without
/// exec has copies of both open: it removes nothing and answers nobody, but a parent that dies before it leaves the name taken
/// until the child has let go of the port, or ends.
final class MessageName: Sendable {
  let path: String
  let listener: MessagePort.Descriptor
  private let lockFile: MessagePort.Descriptor
  private let generation = ForkGeneration.current

  init(_ name: String, in directory: MessagePort.Directory) throws(MessagePortError) {
    path = try directory.socketPath(of: name)
    try directory.prepare(making: true)
    lockFile = try Self.lock(path + ".lock", name)
    do throws(SystemError) {
      listener = try Self.listen(at: path, mode: directory.isShared ? 0o666 : 0o600)
    } catch {
      Self.remove(path + ".lock")
      throw .system(error)
    }
  }

  /// Gives the name up.
  deinit {
    // The files are the parent's.
    guard !generation.isPast else { return }
    // While the lock is held: the next to have it makes both anew.
    Self.remove(path)
    Self.remove(path + ".lock")
  }

  private static func remove(_ path: String) { _ = try? SystemCall.unlink.make { crl_message_unlink(AT_FDCWD, path) } }

  /// Takes the lock, on the file that has this path still when the lock is taken.
  private static func lock(_ path: String, _ name: String) throws(MessagePortError) -> MessagePort.Descriptor {
    do throws(SystemError) {
      while true {
        let file = MessagePort.Descriptor(
          owning: try SystemCall.openFile.makeUninterrupted { crl_message_open_lock(AT_FDCWD, path) })
        do throws(SystemError) {
          _ = try SystemCall.lockFile.makeUninterrupted { crl_message_lock(file.number) }
        } catch {
          guard error.number == EWOULDBLOCK else { throw error }
          throw SystemError(call: error.call, number: EADDRINUSE)
        }
        if try isFile(file, at: path) { return file }
      }
    } catch {
      throw error.number == EADDRINUSE ? .nameInUse(name) : .system(error)
    }
  }

  /// Whether a path leads to this open file; not if who had it before has removed it meanwhile.
  private static func isFile(_ file: MessagePort.Descriptor, at path: String) throws(SystemError) -> Bool {
    var ours = crl_file_status()
    var there = crl_file_status()
    _ = try SystemCall.fileStatus.make { crl_message_descriptor_status(file.number, &ours) }
    do throws(SystemError) {
      _ = try SystemCall.fileStatus.make { crl_message_status(AT_FDCWD, path, &there) }
    } catch {
      guard error.number == ENOENT else { throw error }
      return false
    }
    return ours.device == there.device && ours.inode == there.inode
  }

  /// Listens under a name that is ours, whatever was left there.
  private static func listen(at path: String, mode: UInt32) throws(SystemError) -> MessagePort.Descriptor {
    do throws(SystemError) {
      _ = try SystemCall.unlink.make { crl_message_unlink(AT_FDCWD, path) }
    } catch {
      guard error.number == ENOENT else { throw error }
    }
    let socket = MessagePort.Descriptor(owning: try SystemCall.socket.make { crl_message_socket() }, .listener)
    _ = try SystemCall.bind.make { crl_message_bind(socket.number, path) }
    do throws(SystemError) {
      // Nobody can connect before it listens: the permissions are set in time.
      _ = try SystemCall.changeMode.make { chmod(path, mode) < 0 ? -errno : 0 }
      _ = try SystemCall.listen.make { crl_message_listen(socket.number) }
    } catch {
      remove(path)
      throw error
    }
    return socket
  }
}
