// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
package import RunLoopCore

/// A directory whose entries no other user can replace.
///
/// What is checked is what is used: each directory is opened in the one above it, checked through its descriptor, and
/// the names in the last are looked up in that descriptor. Replacing a directory in between has no effect: its
/// descriptor is already open.
package struct CheckedDirectory: Sendable {
  package let path: String
  /// Whether other users may pass it.
  package let isShared: Bool

  package init(path: String, isShared: Bool = false) {
    self.path = path
    self.isShared = isShared
  }

  /// What is wrong with a directory.
  package enum Fault: Hashable, Sendable {
    /// It is a file, or a symbolic link.
    case notADirectory
    /// It belongs to a user who is not to be trusted with it.
    case foreign(user: UInt32)
    /// Its permissions are these; other users could look or write into it.
    case open(permissions: UInt32)
    /// The path is not absolute, or has a zero byte.
    case notAbsolute
  }

  package enum Failure: Error, Hashable, Sendable {
    case unsafe(String, Fault)
    case system(SystemError)
  }
}

extension CheckedDirectory {
  /// Opens the directory, if it and those above it are safe.
  ///
  /// - Parameter making: For the owner: the directory is made if it is not there, and must be this user's.
  package func open(making: Bool) throws(Failure) -> OwnedDescriptor {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { throw .unsafe(path, .notAbsolute) }
    var names = path.split(separator: "/").map(String.init)
    guard let last = names.popLast(), last != ".", last != ".." else { throw .unsafe(path, .notADirectory) }
    // Symbolic links above it are followed first. Then what they led to is checked, whichever user made them.
    guard let resolved = realpath("/" + names.joined(separator: "/"), nil) else {
      throw .system(SystemError(call: SystemCall.directoryDescriptor.rawValue, number: errno))
    }
    defer { free(resolved) }
    var above = try openRoot()
    var parents = [("/", try status(of: above))]
    for name in String(cString: resolved).split(separator: "/").map(String.init) {
      let path = (parents.count == 1 ? "" : parents[parents.count - 1].0) + "/" + name
      above = try Self.open(name, in: above, path)
      parents.append((path, try status(of: above)))
    }
    // Before anything is made in them.
    if making { try Self.check(parents, trusting: []) }
    let directory = try openLast(last, in: above, making: making)
    let status = try status(of: directory)
    // The owner of a shared directory offers something there; the process that uses it checks the owner.
    try Self.check(parents, trusting: isShared && !making ? [status.user] : [])
    if let fault = fault(mode: status.mode, user: status.user, isOwners: making) { throw .unsafe(path, fault) }
    return directory
  }

  /// Checks that nobody can replace a directory in those above it, except this user and those whom no permissions
  /// restrict.
  private static func check(
    _ parents: [(path: String, status: crl_file_status)], trusting others: [UInt32]
  ) throws(Failure) {
    let trusted = [0, geteuid(), parents[0].status.user] + others
    for (path, status) in parents {
      guard trusted.contains(status.user) else { throw .unsafe(path, .foreign(user: status.user)) }
      guard status.mode & 0o022 == 0 || status.mode & S_ISVTX != 0 else {
        throw .unsafe(path, .open(permissions: status.mode & 0o7777))
      }
    }
  }

  /// What is wrong with a directory of this mode and owner.
  package func fault(mode: UInt32, user: UInt32, isOwners: Bool) -> Fault? {
    guard mode & S_IFMT == S_IFDIR else { return .notADirectory }
    guard UserID.isOwn(user) || (isShared && !isOwners) else { return .foreign(user: user) }
    guard mode & (isShared ? 0o022 : 0o077) == 0 else { return .open(permissions: mode & 0o777) }
    return nil
  }

  private func openRoot() throws(Failure) -> OwnedDescriptor {
    do {
      return OwnedDescriptor(
        try SystemCall.directoryDescriptor.makeUninterrupted { crl_file_find_path("/", 1) })
    } catch { throw .system(error) }
  }

  private static func open(
    _ name: String, in directory: OwnedDescriptor, _ path: String
  ) throws(Failure) -> OwnedDescriptor {
    do {
      return OwnedDescriptor(
        try SystemCall.directoryDescriptor.makeUninterrupted {
          crl_file_find(directory.number, name, 1, 0)
        })
    } catch {
      // Nothing that is no directory is opened, nor the target of a symbolic link.
      guard error.number == ENOTDIR || error.number == ELOOP else { throw .system(error) }
      throw .unsafe(path, .notADirectory)
    }
  }

  private func openLast(
    _ name: String, in parent: OwnedDescriptor, making: Bool
  ) throws(Failure) -> OwnedDescriptor {
    if making {
      do {
        _ = try SystemCall.makeDirectory.make { crl_directory_make(parent.number, name) }
      } catch {
        guard error.number == EEXIST else { throw .system(error) }
      }
    }
    return try Self.open(name, in: parent, path)
  }

  private func status(of directory: OwnedDescriptor) throws(Failure) -> crl_file_status {
    var status = crl_file_status()
    do {
      _ = try SystemCall.fileStatus.make { crl_status_of(directory.number, &status) }
    } catch { throw .system(error) }
    return status
  }
}
