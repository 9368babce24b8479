// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The file of a Unix address that a listening socket has created.
///
/// It is identified by its device, inode and absolute path, so that a file that has replaced it is not removed.
struct SocketFile: Sendable {
  private struct Identity: Equatable {
    let device: dev_t
    let number: ino_t
    let isSocket: Bool

    /// Identifies the file itself, without following a symbolic link, or returns `nil` if there is no file.
    init?(_ path: CText) {
      var status = stat()
      guard path.withPointer({ lstat($0, &status) }) == 0 else { return nil }
      (device, number, isSocket) = (status.st_dev, status.st_ino, status.st_mode & S_IFMT == S_IFSOCK)
    }
  }

  private let path: CText
  private let identity: Identity

  /// Records the file of an address that a socket was just bound to, or returns `nil` if the address has none.
  init?(_ address: SocketAddress) {
    guard let name = address.pathBytes, let path = try? CText(bytes: FileChangeSource.Path(bytes: name).absolute.bytes),
      let identity = Identity(path)
    else { return nil }
    self.path = path
    self.identity = identity
  }

  /// Sets the file's mode, unless another file is in its place.
  func setMode(_ mode: UInt16) throws(SystemError) {
    let found = OwnedDescriptor(
      try SystemCall.openFile.make { path.withPointer { crl_file_find(AT_FDCWD, $0, 0, 0) } })
    guard Identity(path) == identity else { return }
    _ = try SystemCall.changeMode.make {
      path.withPointer { crl_placed_set_mode(found.number, AT_FDCWD, $0, UInt32(mode)) }
    }
  }

  /// Removes the file, unless another file is in its place.
  func remove() {
    guard Identity(path) == identity else { return }
    // The error cannot be reported here. A file that stays causes an error when a socket is bound to the address again.
    _ = try? SystemCall.unlink.make { path.withPointer { unlink($0) } < 0 ? -errno : 0 }
  }
}

// MARK: - Files without a listener

extension SocketFile {
  /// Binds a socket, replacing the file of an address that no longer has a listener if necessary.
  ///
  /// A lock serializes concurrent replacements. Without it, one process could remove the file that another has just
  /// created but does not listen at yet. The lock is on a file of this user that others cannot open
  /// (``ReplacementLock``). The directory is locked too, to exclude other users who may replace the file, but a
  /// process that does not release that lock cannot prevent others from listening.
  ///
  /// - Parameters:
  ///   - address: The address to listen at.
  ///   - path: The path of the address.
  ///   - isOfDatagrams: Whether this is a datagram socket rather than a stream socket.
  ///   - body: Binds the socket and starts listening.
  /// - Throws: `bind` with `EADDRINUSE` if there is a listener or the file is not a socket; `flock` if other processes
  ///   of this user have held the lock for a tenth of a second; the errors of `body`.
  static func replacing(
    _ address: SocketAddress, _ path: CText, isOfDatagrams: Bool = false, _ body: () throws(SystemError) -> Void
  ) throws(SystemError) {
    let locks = try ReplacementLock(path)
    defer { locks.release() }
    do throws(SystemError) {
      return try body()
    } catch {
      guard error.call == SystemCall.bind.rawValue, error.number == EADDRINUSE, let identity = Identity(path),
        identity.isSocket, try isAbandoned(address, isOfDatagrams), Identity(path) == identity
      else { throw error }
    }
    _ = try SystemCall.unlink.make { path.withPointer { unlink($0) } < 0 ? -errno : 0 }
    try body()
  }

  /// Returns whether an address has no listener.
  private static func isAbandoned(_ address: SocketAddress, _ isOfDatagrams: Bool) throws(SystemError) -> Bool {
    let descriptor =
      try isOfDatagrams ? OwnedDescriptor.makeDatagrams(address) : OwnedDescriptor.makeStream(address)
    do throws(SystemError) {
      _ = try descriptor.connect(address)
      return false
    } catch {
      // A socket of another type fails with `EPROTOTYPE`, and a missing permission with `EACCES`.
      return error.number == ECONNREFUSED || error.number == ENOENT
    }
  }
}
