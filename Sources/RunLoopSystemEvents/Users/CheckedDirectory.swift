// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
package import RunLoopCore

/// A directory whose entries other users cannot replace.
///
/// The directory that was checked is the one that is used: each directory is opened relative to its parent and checked
/// through its descriptor, and names in the last one are looked up through that descriptor. Replacing a directory in
/// between has no effect, because its descriptor is already open.
package struct CheckedDirectory: Sendable {
  package let path: String
  /// Whether other users may search the directory.
  package let isShared: Bool

  package init(path: String, isShared: Bool = false) {
    self.path = path
    self.isShared = isShared
  }

  package enum Fault: Hashable, Sendable {
    /// The path leads to a file or a symbolic link.
    case notADirectory
    /// The directory belongs to a user who is not trusted.
    case foreign(user: UInt32)
    /// The permissions allow other users to read or write the directory.
    case open(permissions: UInt32)
    /// The path is not absolute, or contains a zero byte.
    case notAbsolute
  }

  package enum Failure: Error, Hashable, Sendable {
    case unsafe(String, Fault)
    case system(SystemError)
  }
}

extension CheckedDirectory {
  /// Opens the directory if it and its parents are safe.
  ///
  /// - Parameter making: Whether the caller is the owner: the directory is created if it does not exist, and must
  ///   belong to this user.
  package func open(making: Bool) throws(Failure) -> OwnedDescriptor {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { throw .unsafe(path, .notAbsolute) }
    var names = path.split(separator: "/").map(String.init)
    guard let last = names.popLast(), last != ".", last != ".." else { throw .unsafe(path, .notADirectory) }
    // Follow symbolic links in the parents first. Their targets are then checked, no matter which user created the
    // links.
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
    // Check before creating anything in them.
    if making { try Self.check(parents, trusting: []) }
    let directory = try openLast(last, in: above, making: making)
    let status = try status(of: directory)
    // The owner of a shared directory offers a service there. The process that uses it checks the owner.
    try Self.check(parents, trusting: isShared && !making ? [status.user] : [])
    if let fault = fault(mode: status.mode, user: status.user, isOwners: making) { throw .unsafe(path, fault) }
    return directory
  }

  /// Checks that only this user, and users not restricted by permissions, can replace a directory on the path.
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

  /// Returns the fault of a directory with this mode and owner, if it has one.
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
      // The call opens only directories, and does not follow symbolic links.
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
