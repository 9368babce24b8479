// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// Opens files without relying on their paths, and identifies them.
enum OpenFile {
  /// Opens the root of a source, following links in its path.
  static func root(_ path: FileChangeSource.Path, isDirectory: Bool) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.make { CText.answer(bytes: path.bytes) { crl_file_find_path($0, isDirectory ? 1 : 0) } })
  }

  /// Opens a directory by its name in another one, without following a link.
  static func directory(_ name: [UInt8], in parent: OwnedDescriptor) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.make {
        CText.answer(bytes: name) { crl_file_find(parent.number, $0, 1, 0) }
      })
  }

  /// Opens an entry of any type by its name in a directory, without following a link.
  static func entry(_ name: [UInt8], in parent: OwnedDescriptor) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.openFile.make {
        CText.answer(bytes: name) { crl_file_find(parent.number, $0, 0, 0) }
      })
  }

  static func type(_ file: OwnedDescriptor) throws(SystemError) -> UInt32 {
    UInt32(try SystemCall.fileStatus.make { crl_file_type(file.number) })
  }

  static func target(_ link: OwnedDescriptor) throws(SystemError) -> [UInt8] {
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = try SystemCall.openFile.make {
      target.withUnsafeMutableBytes { bytes in crl_link_read(link.number, bytes.baseAddress, bytes.count) }
    }
    return Array(target[..<Int(count)])
  }

  static func identity(_ file: OwnedDescriptor) throws(SystemError) -> WatchTree.Identity {
    var identity = WatchTree.Identity()
    _ = try SystemCall.fileStatus.make { crl_file_identity(file.number, &identity.device, &identity.number) }
    return identity
  }

  /// Returns whether an error means that a path has changed since the queue reported it.
  static func isGone(_ error: SystemError) -> Bool { [ENOENT, ENOTDIR, ELOOP, ESTALE].contains(error.number) }
}

/// A cache of recently opened directories, which during a scan contain the entries that come next.
struct OpenDirectories {
  private static let limit = 16

  private var entries: [(watch: Int32, descriptor: OwnedDescriptor)] = []

  subscript(watch: Int32) -> OwnedDescriptor? { entries.last { $0.watch == watch }?.descriptor }

  mutating func keep(_ descriptor: OwnedDescriptor, of watch: Int32) {
    entries.removeAll { $0.watch == watch }
    if entries.count == Self.limit { entries.removeFirst() }
    entries.append((watch, descriptor))
  }

  mutating func removeAll() { entries = [] }
}

enum DirectoryScan {
  /// Calls `body` with each name and whether it is a directory rather than a link to one.
  static func forEach(
    in found: OwnedDescriptor, _ body: (_ name: [UInt8], _ isDirectory: Bool) -> Void
  ) throws(SystemError) {
    let number = try SystemCall.directoryOpen.make { crl_directory_open(found.number) }
    guard let directory = fdopendir(number) else {
      let error = SystemError(call: SystemCall.directoryOpen.rawValue, number: errno)
      _ = crl_close(number)
      throw error
    }
    defer { closedir(directory) }
    while let entry = try next(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name == [UInt8(ascii: ".")] || name == [UInt8(ascii: "."), UInt8(ascii: ".")] { continue }
      body(name, isDirectory(entry.pointee.d_type, name, number))
    }
  }

  /// Returns the next entry, or `nil` at the end; throws errors, because the remaining entries would never be watched.
  private static func next(_ directory: OpaquePointer) throws(SystemError) -> UnsafeMutablePointer<dirent>? {
    var entry: UnsafeMutablePointer<dirent>?
    _ = try SystemCall.directoryRead.make {
      errno = 0
      entry = readdir(directory)
      return entry == nil ? -errno : 0
    }
    return entry
  }

  private static func isDirectory(_ type: UInt8, _ name: [UInt8], _ parent: Int32) -> Bool {
    guard type == UInt8(DT_UNKNOWN) else { return type == UInt8(DT_DIR) }
    // Some file systems do not report the type.
    var status = stat()
    let answer = CText.answer(bytes: name) { fstatat(parent, $0, &status, AT_SYMLINK_NOFOLLOW) }
    return answer == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
