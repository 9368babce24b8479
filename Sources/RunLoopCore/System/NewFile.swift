// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// An open directory and a name in it, which stays valid even if the directory's path changes.
package struct FilePlace: Sendable {
  package let directory: OwnedDescriptor
  package let name: String

  /// Opens the directory of a path.
  ///
  /// - Throws: The error of `open`: `EINVAL` if the path contains a zero byte, `EISDIR` if it does not end with a name.
  package init(_ path: String) throws(SystemError) {
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let name = end.map { String(path[path.utf8.index(after: $0)...]) } ?? path
    guard !name.isEmpty, name != ".", name != ".." else {
      throw SystemCall.openFile.error(path.isEmpty ? ENOENT : EISDIR)
    }
    guard !path.utf8.contains(0) else { throw SystemCall.openFile.error(EINVAL) }
    let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    directory = OwnedDescriptor(
      try SystemCall.directoryDescriptor.makeUninterrupted {
        CText.answer(folder) { crl_file_find(AT_FDCWD, $0, 1, 1) }
      })
    self.name = name
  }

  /// Creates a place with another name in the same directory.
  package init(_ other: FilePlace, name: String) {
    (directory, self.name) = (other.directory, name)
  }

  /// Returns the status of the file with this name, or `nil` if there is none.
  package func status(followsLink: Bool = false) throws(SystemError) -> FileStatus? {
    var status = stat()
    do throws(SystemError) {
      _ = try SystemCall.fileStatus.make {
        fstatat(directory.number, name, &status, followsLink ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0
      }
      return FileStatus(status)
    } catch {
      guard error.number == ENOENT else { throw error }
      return nil
    }
  }

  /// Opens the file without following a symbolic link and without blocking.
  package func open(_ flags: Int32) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.makeUninterrupted {
        let answer = openat(directory.number, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        return answer < 0 ? -errno : answer
      })
  }

  /// Creates a file that must not exist yet.
  package func make(mode: UInt32) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.makeUninterrupted {
        CText.answer(name) { crl_file_make(directory.number, $0, mode) }
      })
  }

  /// Creates a file with a unique name that other users cannot predict.
  ///
  /// - Parameter pattern: The name, in which the unpredictable part replaces `%`.
  package func makeRandom(_ pattern: String, mode: UInt32) throws(SystemError) -> (FilePlace, OwnedDescriptor) {
    try atRandom(pattern) { place throws(SystemError) in (place, try place.make(mode: mode)) }
  }

  /// Links an unnamed file to a name that other users cannot predict.
  fileprivate func link(_ file: OwnedDescriptor, _ pattern: String) throws(SystemError) -> FilePlace {
    try atRandom(pattern) { place throws(SystemError) in
      _ = try SystemCall.link.make {
        CText.answer(place.name) { crl_file_name(file.number, place.directory.number, $0) }
      }
      return place
    }
  }

  private func atRandom<Result>(
    _ pattern: String, _ body: (FilePlace) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    var attempts = 0
    while true {
      let digits = String(UInt64.random(in: .min ... .max), radix: 36)
      do throws(SystemError) {
        return try body(FilePlace(self, name: pattern.split(separator: "%").joined(separator: digits)))
      } catch {
        attempts += 1
        guard error.number == EEXIST, attempts < 100 else { throw error }
      }
    }
  }

  package func remove() {
    _ = try? SystemCall.unlink.make { unlinkat(directory.number, name, 0) < 0 ? -errno : 0 }
  }

  /// Renames the file within its directory, replacing any file of the new name.
  package func rename(to other: String) throws(SystemError) {
    _ = try SystemCall.rename.make {
      CText.answer(name) { name in
        CText.answer(other) { renameat(directory.number, name, directory.number, $0) < 0 ? -errno : 0 }
      }
    }
  }
}

extension CText {
  /// Returns the result of a call that reports errors as negative numbers, or `-EINVAL` if the text contains a zero
  /// byte.
  package static func answer(_ text: String, _ body: (UnsafePointer<CChar>) -> Int32) -> Int32 {
    answer(bytes: text.utf8, body)
  }

  /// Returns the result of a call that takes bytes, or `-EINVAL` if they contain a zero byte.
  package static func answer(
    bytes: some Collection<UInt8>, _ body: (UnsafePointer<CChar>) -> Int32
  ) -> Int32 {
    guard let text = try? CText(bytes: bytes) else { return -EINVAL }
    return text.withPointer(body)
  }
}

/// The status of a file.
package struct FileStatus: Sendable {
  /// The file type, such as `S_IFREG`.
  package let kind: UInt32
  package let permissions: UInt32
  package let owner: UInt32
  package let names: Int
  private let device: dev_t
  private let number: ino_t

  fileprivate init(_ status: stat) {
    (kind, permissions, owner) = (status.st_mode & S_IFMT, status.st_mode & 0o7777, status.st_uid)
    (names, device, number) = (Int(status.st_nlink), status.st_dev, status.st_ino)
  }

  package init(of file: OwnedDescriptor) throws(SystemError) {
    var status = stat()
    _ = try SystemCall.fileStatus.make { fstat(file.number, &status) < 0 ? -errno : 0 }
    self.init(status)
  }

  package func isSame(as other: FileStatus?) -> Bool { other?.device == device && other?.number == number }

  /// Whether this is a regular file of the current user with a single name that other users cannot write to.
  ///
  /// - Parameter canBeRead: Whether other users may be able to read the file, and therefore to lock it.
  package func isOwn(canBeRead: Bool) -> Bool {
    kind == S_IFREG && owner == geteuid() && names <= 1 && permissions & (canBeRead ? 0o022 : 0o077) == 0
  }
}

/// A file that appears under its name only when it is complete.
///
/// All files at paths given by callers are created with this type. An existing file at the path is neither opened nor
/// followed, so one that another user has put there and holds open is replaced. Until it is complete, the file is
/// unnamed if the file system supports that, so that nothing is left behind if the process is killed; otherwise it has
/// a name that other users cannot predict.
///
/// Not thread-safe: an instance must be used by one thread at a time.
package final class NewFile {
  package let descriptor: OwnedDescriptor
  private let target: FilePlace
  /// The temporary name, or `nil` if the file is unnamed.
  private var place: FilePlace?

  private static let pattern = ".runloop-%.part"

  /// Creates the file with permissions for the current user only.
  ///
  /// - Throws: The error of `open`: `EEXIST` if the path refers to something other than a file, `ELOOP` if it is a
  ///   link.
  package convenience init(path: String) throws(SystemError) {
    try self.init(at: FilePlace(path))
  }

  package init(at target: FilePlace) throws(SystemError) {
    self.target = target
    switch try target.status()?.kind {
    case nil, S_IFREG: break
    case S_IFLNK: throw SystemCall.openFile.error(ELOOP)
    default: throw SystemCall.openFile.error(EEXIST)
    }
    do throws(SystemError) {
      descriptor = OwnedDescriptor(
        try SystemCall.openFile.makeUninterrupted { crl_file_make_unnamed(target.directory.number, 0o600) })
    } catch {
      // Reported by file systems and kernels that do not support unnamed files.
      guard [EOPNOTSUPP, EISDIR, ENOENT, EINVAL].contains(error.number) else { throw error }
      (place, descriptor) = try target.makeRandom(NewFile.pattern, mode: 0o600)
    }
  }

  deinit { discard() }

  /// Moves the file to its final name, replacing any existing file.
  package func finish() throws(SystemError) {
    let named: FilePlace
    if let place { named = place } else { named = try target.link(descriptor, NewFile.pattern) }
    place = named
    try named.rename(to: target.name)
    place = nil
  }

  /// Removes the file unless it has its final name.
  package func discard() {
    place?.remove()
    place = nil
  }
}

/// The permissions of a new file: read and write access for all users, as restricted by the process's umask.
package func filePermissions() -> UInt32 { crl_file_masked_mode(0o666) }
