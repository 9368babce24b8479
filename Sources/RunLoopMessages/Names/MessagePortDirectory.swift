// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort {
  /// The directory of port names, which belongs to this user.
  ///
  /// It must not be a symbolic link, and only its owner may have write permission, because otherwise another user
  /// could create a port there. The same applies to its parents, except that they may belong to the owner of `/`, and
  /// may be writable for others if they are sticky, as `/tmp` is. All of them are checked whenever a port is created,
  /// and are used through the descriptors that were checked.
  public struct Directory: Hashable, Sendable {
    /// The absolute path.
    public let path: String
    /// Whether other users may reach the ports in the directory.
    ///
    /// If true, the directory's permissions decide which users can reach them, and ports check each user and accept
    /// only their own unless `accepts` decides otherwise. If false, the directory must not be accessible to others
    /// (0700). The directory of a local port always belongs to this user.
    public let isShared: Bool

    /// Creates a value for a directory, which is itself created with mode 0700 together with the first port.
    public init(path: String, isShared: Bool = false) {
      self.path = path
      self.isShared = isShared
    }

    /// A reason why a directory is not safe.
    public enum Fault: Hashable, Sendable {
      /// The path leads to a file or a symbolic link.
      case notADirectory
      /// The directory belongs to an untrusted user.
      case foreign(user: UInt32)
      /// The permissions allow other users to read or write the directory.
      case open(permissions: UInt32)
      /// The path is not absolute, or contains a zero byte.
      case notAbsolute
    }
  }
}

extension MessagePort.Directory {
  /// The user's own directory: `runloop` in `$XDG_RUNTIME_DIR` or else in the first directory of `$RUNTIME_DIRECTORY`,
  /// which systemd creates for a service.
  ///
  /// If neither is set to an absolute path, it is `/tmp/runloop-` followed by the user ID. If another user has taken
  /// that name in `/tmp`, a dot and a random number are appended: the first such directory that belongs to this user is
  /// used, or one is created together with the first port. A program that runs with more privileges than the user who
  /// started it ignores the environment.
  ///
  /// - Complexity: O(*n*) in the number of entries of `/tmp` if this user has no directory there yet, and O(1)
  ///   otherwise.
  public static var user: MessagePort.Directory { MessagePort.Directory(path: UserDirectory.path) }

  /// Opens the directory if it and its parents are safe.
  ///
  /// - Parameter making: Whether this is for a local port: the directory is created if it does not exist, and must
  ///   belong to this user.
  func open(making: Bool) throws(MessagePortError) -> OwnedDescriptor {
    do throws(CheckedDirectory.Failure) {
      return try CheckedDirectory(path: path, isShared: isShared).open(making: making)
    } catch {
      switch error {
      case .unsafe(let path, let fault): throw .unsafeDirectory(path, Fault(fault))
      case .system(let error): throw .system(error)
      }
    }
  }
}

extension MessagePort.Directory.Fault {
  init(_ fault: CheckedDirectory.Fault) {
    switch fault {
    case .notADirectory: self = .notADirectory
    case .foreign(let user): self = .foreign(user: user)
    case .open(let permissions): self = .open(permissions: permissions)
    case .notAbsolute: self = .notAbsolute
    }
  }
}

extension MessagePort.Directory {
  /// Checks a name, and that its socket's path is short enough for other programs to connect to.
  func check(_ name: String) throws(MessagePortError) {
    func isAlphanumeric(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: false
      }
    }
    let bytes = name.utf8
    guard let first = bytes.first, bytes.count <= 64, isAlphanumeric(first), !name.hasSuffix(".lock") else {
      throw .invalidName(name)
    }
    for byte in bytes {
      guard isAlphanumeric(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      else { throw .invalidName(name) }
    }
    // The lock file's name is five bytes longer, but is not used as a socket address.
    let path = "\(path)/\(name)"
    guard path.utf8.count < crl_message_path_limit() else { throw .pathTooLong(path) }
  }
}

extension MessagePort.Directory.Fault: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .notADirectory: "it is no directory"
    case .foreign(let user) where UserID.isOverflow(user):
      "it belongs to user \(user), which stands for all users without an id in this user namespace"
    case .foreign(let user): "it belongs to user \(user)"
    case .open(let permissions): "its permissions are \(String(permissions, radix: 8))"
    case .notAbsolute: "the path is not absolute"
    }
  }
}
