// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension FileChangeSource: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode; `RunLoopError.invalidSource`, `RunLoopError.loopHasEnded`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
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
