import CRunLoopSystem
import Glibc
import RunLoopCore

extension MessagePort {
  /// Where the names of ports are: a directory of this user's.
  ///
  /// It is not a symbolic link, and only its owner may write to it: else another user could put a port of his own there. It
  /// is looked at whenever a port is made.
  public struct Directory: Hashable, Sendable {
    /// The absolute path.
    public let path: String
    /// Whether other users may reach the ports in it.
    ///
    /// They may if the directory lets them pass; ports check who it is, and take only their own user unless they are told
    /// otherwise. If not, the directory is one that nobody else can look into (0700).
    public let isShared: Bool

    /// Names a directory, which is made (0700) when the first port is.
    public init(path: String, isShared: Bool = false) {
      self.path = path
      self.isShared = isShared
    }

    /// The user's own: `$XDG_RUNTIME_DIR/runloop`, or, where that is not set to an absolute path, `/tmp/runloop-` and the
    /// user's id.
    public static var user: Directory {
      if let runtime = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), runtime.hasPrefix("/") {
        return Directory(path: runtime + "/runloop")
      }
      return Directory(path: "/tmp/runloop-\(geteuid())")
    }

    /// What is wrong with a directory.
    public enum Fault: Hashable, Sendable {
      /// It is a file, or a symbolic link.
      case notADirectory
      /// It belongs to this user.
      case foreign(user: UInt32)
      /// Its permissions are these; other users could look or write into it.
      case open(permissions: UInt32)
      /// The path is not absolute, or has a zero byte.
      case notAbsolute
    }
  }
}

extension MessagePort.Directory {
  /// Sees to it that the directory is there and safe.
  ///
  /// What is checked cannot change behind our back: only its owner can replace a directory in `/tmp`, which is sticky, or in
  /// a directory of his own.
  func prepare(making: Bool) throws(MessagePortError) {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { throw .unsafeDirectory(path, .notAbsolute) }
    if making {
      do {
        _ = try SystemCall.makeDirectory.make { crl_message_make_directory(AT_FDCWD, path) }
      } catch {
        guard error.number == EEXIST else { throw .system(error) }
      }
    }
    var status = crl_file_status()
    do {
      _ = try SystemCall.fileStatus.make { crl_message_status(AT_FDCWD, path, &status) }
    } catch { throw .system(error) }
    if let fault = fault(mode: status.mode, user: status.user) { throw .unsafeDirectory(path, fault) }
  }

  /// What is wrong with a directory of this mode and owner.
  func fault(mode: UInt32, user: UInt32) -> Fault? {
    guard mode & S_IFMT == S_IFDIR else { return .notADirectory }
    // In a shared directory the owner is whoever offers the ports; a sender checks who that is.
    guard user == geteuid() || isShared else { return .foreign(user: user) }
    guard mode & (isShared ? 0o022 : 0o077) == 0 else { return .open(permissions: mode & 0o777) }
    return nil
  }

  /// The path of a port's socket.
  func socketPath(of name: String) throws(MessagePortError) -> String {
    try Self.check(name)
    let path = "\(path)/\(name)"
    // The lock file's name is longer by five, and is no socket.
    guard path.utf8.count < crl_message_path_limit() else { throw .pathTooLong(path) }
    return path
  }

  private static func check(_ name: String) throws(MessagePortError) {
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
  }
}

extension MessagePort.Directory.Fault: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .notADirectory: "it is no directory"
    case .foreign(let user): "it belongs to user \(user)"
    case .open(let permissions): "its permissions are \(String(permissions, radix: 8))"
    case .notAbsolute: "the path is not absolute"
    }
  }
}
