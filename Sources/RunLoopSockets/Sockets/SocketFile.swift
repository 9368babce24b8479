// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The file of a Unix address that a listening socket has made.
///
/// It is known by its device and number, and its path does not depend on the working directory: what another program
/// has put in its place is not removed.
struct SocketFile: Sendable {
  private struct Identity: Equatable {
    let device: dev_t
    let number: ino_t
    let isSocket: Bool

    /// Of the file itself, and not of one that a link leads to; nil if there is none.
    init?(_ path: CText) {
      var status = stat()
      guard path.withPointer({ lstat($0, &status) }) == 0 else { return nil }
      (device, number, isSocket) = (status.st_dev, status.st_ino, status.st_mode & S_IFMT == S_IFSOCK)
    }
  }

  private let path: CText
  private let identity: Identity

  /// The file of an address that a socket has just been bound to; nil if the address has none.
  init?(_ address: SocketAddress) {
    guard let name = address.pathBytes, let path = try? CText(bytes: FileChangeSource.Path(bytes: name).absolute.bytes),
      let identity = Identity(path)
    else { return nil }
    self.path = path
    self.identity = identity
  }

  /// Sets the file's mode; another that is in its place is not touched.
  func setMode(_ mode: UInt16) throws(SystemError) {
    let found = OwnedDescriptor(
      try SystemCall.openFile.make { path.withPointer { crl_file_find(AT_FDCWD, $0, 0, 0) } })
    guard Identity(path) == identity else { return }
    _ = try SystemCall.changeMode.make {
      path.withPointer { crl_placed_set_mode(found.number, AT_FDCWD, $0, UInt32(mode)) }
    }
  }

  /// Removes the file, unless another is in its place.
  func remove() {
    guard Identity(path) == identity else { return }
    // Nobody can be notified; a file that is left says so to the next who listens there.
    _ = try? SystemCall.unlink.make { path.withPointer { unlink($0) } < 0 ? -errno : 0 }
  }
}

// MARK: - Files that nobody listens at

extension SocketFile {
  /// Binds a socket, if need be in the place of a file at which nobody listens any more.
  ///
  /// Those who do so at the same time come one after the other, by a lock: else one would remove the file that another
  /// has just made, and does not listen at yet. The lock is on a file of this user's that others cannot open
  /// (``ReplacementLock``). The directory is locked too, for other users who may replace the file, but a process that
  /// does not release that lock prevents no listener.
  ///
  /// - Parameters:
  ///   - address: Where to listen.
  ///   - path: The path of the address.
  ///   - isOfDatagrams: Whether the socket receives datagrams, and not connections.
  ///   - body: Binds and begins to listen.
  /// - Throws: `bind` with `EADDRINUSE` if there is a listener, or the file is no socket; `flock` if other processes
  ///   of this user have held the lock for a tenth of a second; what `body` throws.
  static func replacing(
    _ address: SocketAddress, _ path: CText, isOfDatagrams: Bool = false, _ body: () throws(SystemError) -> Void
  ) throws(SystemError) {
    let locks = try ReplacementLock(path)
    defer { withExtendedLifetime(locks) {} }
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

  /// Whether nobody listens at an address.
  private static func isAbandoned(_ address: SocketAddress, _ isOfDatagrams: Bool) throws(SystemError) -> Bool {
    let descriptor =
      try isOfDatagrams ? OwnedDescriptor.makeDatagrams(address) : OwnedDescriptor.makeStream(address)
    do throws(SystemError) {
      _ = try descriptor.connect(address)
      return false
    } catch {
      // Of another type it is `EPROTOTYPE`, without permission `EACCES`.
      return error.number == ECONNREFUSED || error.number == ENOENT
    }
  }
}
