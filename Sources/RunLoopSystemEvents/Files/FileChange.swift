// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopSystem
public import RunLoopCore

/// A change of a watched file, or an event of the watch itself.
public struct FileChange: Hashable, Sendable {
  /// The kinds of changes.
  public enum Kind: Hashable, Sendable {
    /// A file or directory was created, or was found in a new directory.
    case created
    /// A name was removed.
    case removed
    /// A file was written to or truncated.
    case modified
    /// A file that was open for writing was closed, so its writer has finished.
    case written
    /// Permissions, owner, dates or the number of links have changed.
    case attributes
    /// A name was moved away. If the destination is watched, a ``movedTo`` with the same ``FileChange/cookie`` reports
    /// it.
    case movedFrom
    /// A name was moved to this path.
    case movedTo
    /// Changes were lost because there were too many at once. Rescan the files.
    case overflow
    /// The watched path no longer leads to the watched file, which was removed, moved, replaced or unmounted. The
    /// source has ended.
    case rootGone
    /// The path that a source follows now leads to another file, which is watched instead. If it is a directory, its
    /// entries are then reported as ``created``.
    case replaced
    /// A directory cannot be watched, so changes in it are not reported.
    case unwatched(SystemError)
    /// The changes cannot be read. The source has ended.
    case failed(SystemError)
  }

  /// The kind of change.
  public let kind: Kind
  /// The path that has changed: the watched path, with the names below it appended.
  public let path: FileChangeSource.Path
  /// Whether the path is a directory.
  public let isDirectory: Bool
  /// A number shared by both halves of a move, and 0 for other changes.
  public let cookie: UInt32

  init(_ kind: Kind, _ path: FileChangeSource.Path, isDirectory: Bool = false, cookie: UInt32 = 0) {
    self.kind = kind
    self.path = path
    self.isDirectory = isDirectory
    self.cookie = cookie
  }
}

extension FileChangeSource {
  /// The kinds of changes that a source reports.
  ///
  /// Overflows, directories that cannot be watched, and changes of the watched path itself are always reported.
  public struct Events: OptionSet, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a set from a raw value.
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
    /// All kinds except ``written``, which is reported in addition to ``modified``.
    public static let all: Events = [.created, .removed, .modified, .attributes, .moved]
  }
}

extension FileChangeSource.Events {
  /// The kernel's mask for these events and for those needed to keep the tree up to date.
  var mask: UInt32 {
    var mask = UInt32(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
    if contains(.modified) { mask |= UInt32(IN_MODIFY) }
    if contains(.attributes) { mask |= UInt32(IN_ATTRIB) }
    if contains(.written) { mask |= UInt32(IN_CLOSE_WRITE) }
    return mask
  }

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

/// An error of watching files.
public enum FileChangeError: Error, Hashable, Sendable {
  /// The path cannot be watched: it does not exist (`ENOENT`), is not a directory although `recursive` was set
  /// (`ENOTDIR`) or is not readable (`EACCES`); or, for it or a directory below it, the user's limit of watches is
  /// reached (`ENOSPC`).
  case cannotWatch(FileChangeSource.Path, SystemError)
  /// The user's or the process's limit of inotify queues is reached (`EMFILE`).
  case noQueue(SystemError)
  /// The path contains a zero byte, which the system does not permit.
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
