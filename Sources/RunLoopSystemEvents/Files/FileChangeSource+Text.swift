// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

// MARK: - Paths as strings

extension FileChangeSource {
  /// Creates a source for a path given as a string.
  ///
  /// See ``init(path:recursive:events:handler:)-(FileChangeSource.Path,_,_,_)``, which also accepts paths that are not
  /// valid UTF-8.
  @_disfavoredOverload
  public convenience init(
    path: String, recursive: Bool = false, events: Events = .all,
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(path: Path(path), recursive: recursive, events: events, handler: handler)
  }

  /// Creates a source that follows a path given as a string.
  ///
  /// See ``init(following:recursive:events:handler:)-(FileChangeSource.Path,_,_,_)``.
  @_disfavoredOverload
  public convenience init(
    following path: String, recursive: Bool = false, events: Events = .all.union(.written),
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(following: Path(path), recursive: recursive, events: events, handler: handler)
  }

  /// Returns the changes of a path given as a string as an asynchronous sequence, served by a loop.
  ///
  /// See ``changes(of:recursive:events:on:forMode:bufferSize:)-(FileChangeSource.Path,_,_,_,_,_)``.
  @_disfavoredOverload
  public static func changes(
    of path: String, recursive: Bool = false, events: Events = .all, on loop: RunLoop,
    forMode mode: RunLoop.Mode = .common, bufferSize: Int = 1024
  ) throws -> EventSequence<FileChange> {
    try changes(
      of: Path(path), recursive: recursive, events: events, on: loop, forMode: mode, bufferSize: bufferSize)
  }
}
