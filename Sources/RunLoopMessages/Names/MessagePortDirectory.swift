// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort {
  /// Where the names of ports are: a directory of this user's.
  ///
  /// It is not a symbolic link, and only its owner may write to it, or another user could put a port of his own there.
  /// The same holds for the directories above it, which may also belong to whoever owns `/`, and in which others may
  /// write if they are sticky, as `/tmp` is. All of them are checked whenever a port is made, and used as they were
  /// checked.
  public struct Directory: Hashable, Sendable {
    /// The absolute path.
    public let path: String
    /// Whether other users may reach the ports in it.
    ///
    /// They may if the directory lets them pass; ports check who it is, and take only their own user unless `accepts`
    /// says otherwise. If not, the directory is one that nobody else can look into (0700). A local port's directory
    /// belongs to this user in either case.
    public let isShared: Bool

    /// Names a directory, which is made (0700) when the first port is.
    public init(path: String, isShared: Bool = false) {
      self.path = path
      self.isShared = isShared
    }

    /// What is wrong with a directory.
    public enum Fault: Hashable, Sendable {
      /// It is a file, or a symbolic link.
      case notADirectory
      /// It belongs to this user, who is not to be trusted with it.
      case foreign(user: UInt32)
      /// Its permissions are these; other users could look or write into it.
      case open(permissions: UInt32)
      /// The path is not absolute, or has a zero byte.
      case notAbsolute
    }
  }
}

extension MessagePort.Directory {
  /// The user's own: `runloop` in `$XDG_RUNTIME_DIR`, or else in the first directory of `$RUNTIME_DIRECTORY`, which
  /// systemd makes for a service; where neither is set to an absolute path, `/tmp/runloop-` and the user's id.
  ///
  /// If another user has taken that name in `/tmp`, it is `/tmp/runloop-`, the user's id, a dot and a random number:
  /// the first such directory that belongs to this user, or one that is made with the first port. A program that runs
  /// with more rights than the user who started it does not ask the environment.
  ///
  /// - Complexity: O(*n*) in the entries of `/tmp` if this user has no directory there yet; otherwise constant.
  public static var user: MessagePort.Directory { MessagePort.Directory(path: UserDirectory.path) }

  /// Opens the directory, if it and those above it are safe.
  ///
  /// - Parameter making: For a local port: the directory is made if it is not there, and must be this user's.
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
  /// Checks a name, and that the path of its socket is one that other programs can connect to.
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
    // The lock file's name is longer by five, and is no socket.
    let path = "\(path)/\(name)"
    guard path.utf8.count < crl_message_path_limit() else { throw .pathTooLong(path) }
  }
}

extension MessagePort.Directory.Fault: CustomStringConvertible {
  /// The text for a person.
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
