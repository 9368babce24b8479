// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension FileChangeSource: RunLoopItem {
  /// Adds the source to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode, `RunLoopError.invalidSource`, and `RunLoopError.loopHasEnded`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension FileChangeSource {
  /// Returns changes as an asynchronous sequence, served by a loop.
  ///
  /// When the buffer is full, its last change becomes ``FileChange/Kind/overflow`` and later changes are lost. Only
  /// the end of the source replaces an overflow. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - path: A file or a directory.
  ///   - recursive: Whether to watch all directories below as well. The default is false.
  ///   - events: The changes to report; ``Events/all`` by default.
  ///   - loop: A running loop. The sequence ends with its thread.
  ///   - mode: A mode that the loop runs in.
  ///   - bufferSize: The maximum number of buffered changes, at least one; 1024 by default.
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
