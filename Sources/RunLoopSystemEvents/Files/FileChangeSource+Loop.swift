// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension RunLoop {
  /// Adds a source of file changes to a mode, or, for `RunLoop.Mode.common`, to every common mode, present and future.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode; `RunLoopError.invalidSource`, `RunLoopError.loopHasEnded`.
  public func add(_ source: FileChangeSource, forMode mode: Mode) throws(RunLoopError) { try register(source, mode) }

  /// Removes a source of file changes from a mode, or, for `RunLoop.Mode.common`, a common source from every common
  /// mode.
  ///
  /// Can be called from any thread.
  public func remove(_ source: FileChangeSource, forMode mode: Mode) { unregister(source, mode) }

  /// Whether a source of file changes is in a mode, or, for `RunLoop.Mode.common`, among the common items.
  ///
  /// Can be called from any thread.
  public func contains(_ source: FileChangeSource, forMode mode: Mode) -> Bool { isRegistered(source, mode) }
}

extension FileChangeSource {
  /// Returns changes as an asynchronous sequence, with a loop to serve them.
  ///
  /// When the buffer is full, its last change becomes ``FileChange/Kind/overflow``, and later changes are lost; only
  /// the end of the root takes the place of an overflow. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - path: A file or a directory.
  ///   - recursive: Whether all directories below are watched as well.
  ///   - events: The changes to report.
  ///   - loop: A loop that runs; the sequence ends with its thread.
  ///   - mode: The mode that the loop runs in.
  ///   - bufferSize: The most changes that wait, at least one.
  /// - Throws: A ``FileChangeError``, or a `RunLoopError`.
  public static func changes(
    of path: Path, recursive: Bool = false, events: Events = .all, on loop: RunLoop,
    forMode mode: RunLoop.Mode = .common, bufferSize: Int = 1024
  ) throws -> EventSequence<FileChange> {
    let buffer = EventBuffer<FileChange>(capacity: bufferSize) { last, next in
      switch (last.kind, next.kind) {
      case (.rootGone, _), (.failed, _): break
      case (_, .rootGone), (_, .failed): last = next
      default: last = FileChange(.overflow, path)
      }
    }
    let source = try FileChangeSource(path, recursive, events, endsWithLoop: true) {
      [producer = EventProducer(buffer)] _, changes in
      for change in changes { producer.send(change) }
    }
    try loop.add(source, forMode: mode)
    return EventSequence(buffer) { source.invalidate() }
  }
}
