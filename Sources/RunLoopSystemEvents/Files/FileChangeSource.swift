// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A source that calls its handler with the changes of a file, a directory, or a tree of directories.
///
/// In a tree, new directories are watched at once, with everything that is in them by then; directories that are moved
/// within the tree are followed. Symbolic links below the watched path are not followed. The source reports what the
/// kernel reports: changes on this machine, under any name that is watched. It notices neither the
/// move of a parent of the watched path nor a write through a memory mapping.
///
/// The source may be in any number of modes of any number of loops; each change is reported once, by one of them.
/// Changes that happen before the source is in a mode are kept, up to a limit. All sources of a process share one queue
/// of the kernel; the process needs `/proc` to be mounted. Memory grows with the number of directories, which the
/// kernel limits for each user, and with a part of the largest directory that appears.
///
/// The facility of the kernel is `inotify`.
public final class FileChangeSource: @unchecked Sendable {
  // Sendable: the lock guards the watcher.

  /// The watched path.
  public let path: Path
  /// The changes that it reports.
  public let events: Events
  /// Directories of the tree that this process may not read, and that are not watched, when the source was made.
  ///
  /// Later ones are reported by ``FileChange/Kind/unwatched(_:)``.
  public let unreadable: [Path]

  let loopRegistration: LoopRegistration
  private let lock = ProcessLock()
  private var watcher: FileWatcher?
  private let handler: HandlerBox<Call>

  private struct Call: Sendable {
    let body: @Sendable (FileChangeSource, [FileChange]) -> Void
  }

  private let endsWithLoop: Bool

  /// Makes a source that is in no mode; from now on the kernel keeps the changes.
  ///
  /// - Parameters:
  ///   - path: A file or a directory; for a directory, changes of its entries are reported.
  ///   - recursive: Whether all directories below are watched as well.
  ///   - events: The changes to report.
  ///   - handler: Called on a loop's thread with changes, at least one, in the order in which they happened. It is
  ///     released when the source is invalid and no call-out runs.
  /// - Throws: A ``FileChangeError``.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n) in the entries below the path, if recursive.
  public convenience init(
    path: Path, recursive: Bool = false, events: Events = .all,
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(path, recursive, events, endsWithLoop: false, handler)
  }

  /// Makes a source; tests may give it a queue of its own, and a limit of records that wait.
  init(
    _ path: Path, _ recursive: Bool, _ events: Events, endsWithLoop: Bool = false, ownQueue: WatchQueue? = nil,
    limit: Int = WatchInbox.defaultLimit, _ handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    let watcher = try FileWatcher(path, recursive: recursive, events: events, limit: limit, ownQueue: ownQueue)
    unreadable = watcher.unreadable
    loopRegistration = LoopRegistration(watcher.inbox.descriptor, watcher.queue.descriptor)
    self.watcher = watcher
    self.path = path
    self.events = events
    self.handler = HandlerBox(Call(body: handler))
    self.endsWithLoop = endsWithLoop
  }

  deinit {
    invalidate()
  }

  /// Whether the source can still be added and called.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { loopRegistration.isOpen }

  /// How many directories are watched, or one for a file; none when the source is invalid.
  ///
  /// Can be used from any thread.
  public var watchCount: Int { lock.isParents ? 0 : lock.withLock { watcher?.watchCount ?? 0 } }

  /// Ends the source permanently: it leaves all modes of all loops and is not called again.
  ///
  /// The handler is released at once, or when its running call-out has returned. Can be called from any thread. Calling
  /// it again has no effect.
  public func invalidate() {
    guard loopRegistration.close() else { return }
    let ended = lock.withLock {
      let ended = watcher
      watcher = nil
      return ended
    }
    ended?.close()
    handler.take()
  }
}

extension FileChangeSource: RegisteredSource {
  func serve() {
    var mayTake = true
    while loopRegistration.isOpen {
      lock.lock()
      let step = watcher?.step(mayTake: mayTake)
      let hasEnded = watcher?.hasEnded ?? true
      lock.unlock()
      guard let step else { return }
      // One read for each call: the descriptor stays ready, and others have their turn.
      if step.didTake { mayTake = false }
      guard let handler = handler.held else { return }
      if hasEnded { invalidate() }
      if !step.changes.isEmpty {
        noteCall(of: handler)
        handler.body(self, step.changes)
      }
    }
  }

  func hasLeft() { if endsWithLoop { invalidate() } }

  package var keepAliveKind: KeepAliveKind { .files }
  package var keepAliveDetail: String { "changes of \(path)" }
}

extension FileChangeSource: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String { itemDescription(self, "path = \(path), watches = \(watchCount)") }
}
