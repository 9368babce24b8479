// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

// Paths as texts, which most are.

extension FileChangeSource {
  /// Makes a source for a path that is text.
  ///
  /// The other parameters, the errors and the complexity are those of
  /// ``init(path:recursive:events:handler:)-(FileChangeSource.Path,_,_,_)``, which takes paths that are not UTF-8 as
  /// well. Can be called from any thread.
  @_disfavoredOverload
  public convenience init(
    path: String, recursive: Bool = false, events: Events = .all,
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(path: Path(path), recursive: recursive, events: events, handler: handler)
  }

  /// Makes a source that follows a path that is text.
  ///
  /// See ``init(following:recursive:events:handler:)-(FileChangeSource.Path,_,_,_)``.
  @_disfavoredOverload
  public convenience init(
    following path: String, recursive: Bool = false, events: Events = .all.union(.written),
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(following: Path(path), recursive: recursive, events: events, handler: handler)
  }

  /// Returns the changes of a path that is text as an asynchronous sequence, with a loop to serve them.
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
