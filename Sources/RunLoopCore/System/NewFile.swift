// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// A directory that is open, and a name in it: what becomes of the path meanwhile does not matter.
package struct FilePlace: Sendable {
  package let directory: OwnedDescriptor
  package let name: String

  /// Opens the directory of a path.
  ///
  /// - Throws: `open`: with `EINVAL` for a path with a zero byte, with `EISDIR` for one that ends with no name.
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

  /// The same directory with another name.
  package init(_ other: FilePlace, name: String) {
    (directory, self.name) = (other.directory, name)
  }

  /// What the name stands for; nil if there is nothing.
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

  /// Opens what is there, and not where a link leads; nothing is waited for.
  package func open(_ flags: Int32) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.makeUninterrupted {
        let answer = openat(directory.number, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        return answer < 0 ? -errno : answer
      })
  }

  /// Makes a file that was not there.
  package func make(mode: UInt32) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.makeUninterrupted {
        CText.answer(name) { crl_file_make(directory.number, $0, mode) }
      })
  }

  /// Makes a file under a name that others cannot foresee, which no other file has.
  ///
  /// - Parameter pattern: The name, in which `%` stands for what cannot be foreseen.
  package func makeRandom(_ pattern: String, mode: UInt32) throws(SystemError) -> (FilePlace, OwnedDescriptor) {
    try atRandom(pattern) { place throws(SystemError) in (place, try place.make(mode: mode)) }
  }

  /// Lets a file without a name have one that others cannot foresee.
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

  /// Lets a file of this name have another in the same directory, in the place of what has that.
  package func rename(to other: String) throws(SystemError) {
    _ = try SystemCall.rename.make {
      CText.answer(name) { name in
        CText.answer(other) { renameat(directory.number, name, directory.number, $0) < 0 ? -errno : 0 }
      }
    }
  }
}

extension CText {
  /// The answer of a call that returns a negative error; `EINVAL` for a text with a zero byte.
  package static func answer(_ text: String, _ body: (UnsafePointer<CChar>) -> Int32) -> Int32 {
    answer(bytes: text.utf8, body)
  }

  /// The same for bytes.
  package static func answer(
    bytes: some Collection<UInt8>, _ body: (UnsafePointer<CChar>) -> Int32
  ) -> Int32 {
    guard let text = try? CText(bytes: bytes) else { return -EINVAL }
    return text.withPointer(body)
  }
}

/// What is known of a file.
package struct FileStatus: Sendable {
  /// `S_IFREG` and its like.
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

  /// Whether it is a file of this user's that has no second name and that others cannot write.
  ///
  /// - Parameter canBeRead: Whether others may be able to read it, and so to lock it.
  package func isOwn(canBeRead: Bool) -> Bool {
    kind == S_IFREG && owner == geteuid() && names <= 1 && permissions & (canBeRead ? 0o022 : 0o077) == 0
  }
}

/// A file that has its name when it is whole, and none that others can foresee before.
///
/// It is the one way in which the project makes files at paths of its callers. What is at the path meanwhile is neither
/// opened nor followed: a file that another user has put there and holds open is replaced. Until it is whole the file
/// has no name at all, where the file system can do that, so that nothing is left of it if the process is killed.
///
/// One thread at a time.
package final class NewFile {
  package let descriptor: OwnedDescriptor
  private let target: FilePlace
  /// The name that it has meanwhile; nil if it has none.
  private var place: FilePlace?

  private static let pattern = ".runloop-%.part"

  /// Makes the file, of this user alone.
  ///
  /// - Throws: `open` with `EEXIST` if something is at the path that is no file, `ELOOP` if it is a link.
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
      // What file systems say that cannot do it, and kernels.
      guard [EOPNOTSUPP, EISDIR, ENOENT, EINVAL].contains(error.number) else { throw error }
      (place, descriptor) = try target.makeRandom(NewFile.pattern, mode: 0o600)
    }
  }

  deinit { discard() }

  /// Lets it have its name, in the place of what is there.
  package func finish() throws(SystemError) {
    let named: FilePlace
    if let place { named = place } else { named = try target.link(descriptor, NewFile.pattern) }
    place = named
    try named.rename(to: target.name)
    place = nil
  }

  /// Removes it, unless it has its name.
  package func discard() {
    place?.remove()
    place = nil
  }
}

/// The permissions that a file gets which the process makes for everyone whom its mask does not exclude.
package func filePermissions() -> UInt32 { crl_file_masked_mode(0o666) }
