// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopSystem
public import RunLoopCore

/// Something that happened to a watched file, or to the watching.
public struct FileChange: Hashable, Sendable {
  /// What happened.
  public enum Kind: Hashable, Sendable {
    /// A file or directory has been made, or was found in a directory that is new here.
    case created
    /// A name has been removed.
    case removed
    /// A file has been written to or truncated.
    case modified
    /// A file that was open for writing has been closed, so its writer has finished.
    case written
    /// Permissions, owner, dates or the number of links have changed.
    case attributes
    /// A name has been moved away; a ``movedTo`` with the same ``FileChange/cookie`` reports where to, if that is
    /// watched.
    case movedFrom
    /// A name has been moved here.
    case movedTo
    /// Changes were lost, because there were too many at once: look at the files themselves.
    case overflow
    /// The watched path no longer leads to the file that is watched, which was removed, moved, replaced or unmounted;
    /// the source has ended.
    case rootGone
    /// The path that a source follows leads to another file now, which is watched instead. In a directory, each entry
    /// is reported as ``created`` next.
    case replaced
    /// A directory cannot be watched: changes in it are not reported.
    case unwatched(SystemError)
    /// The changes cannot be read; the source has ended.
    case failed(SystemError)
  }

  /// What happened.
  public let kind: Kind
  /// The path that it happened to: the watched path, with the names below it appended.
  public let path: FileChangeSource.Path
  /// Whether that is a directory.
  public let isDirectory: Bool
  /// The same number in both halves of a move; otherwise 0.
  public let cookie: UInt32

  init(_ kind: Kind, _ path: FileChangeSource.Path, isDirectory: Bool = false, cookie: UInt32 = 0) {
    self.kind = kind
    self.path = path
    self.isDirectory = isDirectory
    self.cookie = cookie
  }
}

extension FileChangeSource {
  /// The changes that a source reports.
  ///
  /// Overflows, directories that cannot be watched and what happens to the watched path itself are always reported.
  public struct Events: OptionSet, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Makes a value from its raw value.
    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// ``FileChange/Kind/created``.
    public static let created = Events(rawValue: 1 << 0)
    /// ``FileChange/Kind/removed``.
    public static let removed = Events(rawValue: 1 << 1)
    /// ``FileChange/Kind/modified``.
    public static let modified = Events(rawValue: 1 << 2)
    /// ``FileChange/Kind/attributes``.
    public static let attributes = Events(rawValue: 1 << 3)
    /// ``FileChange/Kind/movedFrom`` and ``FileChange/Kind/movedTo``.
    public static let moved = Events(rawValue: 1 << 4)
    /// ``FileChange/Kind/written``.
    public static let written = Events(rawValue: 1 << 5)
    /// All of them except ``written``, which comes in addition to ``modified``.
    public static let all: Events = [.created, .removed, .modified, .attributes, .moved]
  }
}

extension FileChangeSource.Events {
  /// What the kernel is asked for, to keep the tree up to date and to report these.
  var mask: UInt32 {
    var mask = UInt32(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
    if contains(.modified) { mask |= UInt32(IN_MODIFY) }
    if contains(.attributes) { mask |= UInt32(IN_ATTRIB) }
    if contains(.written) { mask |= UInt32(IN_CLOSE_WRITE) }
    return mask
  }

  /// Whether a change is reported.
  func include(_ kind: FileChange.Kind) -> Bool {
    switch kind {
    case .created: contains(.created)
    case .removed: contains(.removed)
    case .modified: contains(.modified)
    case .written: contains(.written)
    case .attributes: contains(.attributes)
    case .movedFrom, .movedTo: contains(.moved)
    case .overflow, .rootGone, .replaced, .unwatched, .failed: true
    }
  }
}

/// The reason why files cannot be watched.
public enum FileChangeError: Error, Hashable, Sendable {
  /// The path cannot be watched: it does not exist (`ENOENT`), is no directory though a tree is asked for (`ENOTDIR`),
  /// may not be read (`EACCES`); or, for it or a directory below it, the user's watches are used up (`ENOSPC`).
  case cannotWatch(FileChangeSource.Path, SystemError)
  /// The system has no queue of changes left for the user or the process (`EMFILE`).
  case noQueue(SystemError)
  /// The path has a zero byte, which no path of the system has.
  case notAPath(FileChangeSource.Path)
}

extension FileChangeError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .cannotWatch(let path, let error): "\(path) cannot be watched: \(error)"
    case .notAPath(let path): "a path of \(path.bytes.count) bytes contains a zero byte"
    case .noQueue(let error): "file changes cannot be watched: \(error)"
    }
  }
}
