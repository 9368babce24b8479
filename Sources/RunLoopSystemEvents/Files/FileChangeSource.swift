// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A source that calls its handler with the changes of a file, a directory, or a tree of directories.
///
/// In a tree, new directories are watched at once, with everything that is in them by then; directories that are moved
/// within the tree are followed. Symbolic links below the watched path are not followed. The source reports what the
/// kernel reports: changes on this machine, under any name that is watched. It does not notice a write through a memory
/// mapping.
///
/// What is watched is a path, and each link and directory on the way to it. The source ends with
/// ``FileChange/Kind/rootGone`` when the path no longer leads to the same file. A source that is made by
/// ``init(following:recursive:events:handler:)-(FileChangeSource.Path,_,_,_)`` continues with the file that the path
/// leads to then. A directory on the way that this process may not read is not watched. A relative path is resolved
/// when the source is made.
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

  /// Makes a source that follows its path and is in no mode; from now on the kernel keeps the changes.
  ///
  /// The path may lead to nothing yet, and to one file after another, as it does when an editor replaces a file at each
  /// save, a directory is removed and made again, or a link on the way is set anew. The source reports
  /// ``FileChange/Kind/replaced`` when the path leads to another file, ``FileChange/Kind/removed`` when it leads to
  /// none, and ``FileChange/Kind/created`` when it leads to one again, always with the path itself. The entries of a
  /// new directory are then reported as created. It ends only when it is invalidated, or with
  /// ``FileChange/Kind/failed(_:)``.
  ///
  /// - Parameters:
  ///   - path: The path of a file or a directory; for a directory, changes of its entries are reported.
  ///   - recursive: Whether all directories below are watched as well; then a file at the path counts as none.
  ///   - events: The changes to report, by default with ``FileChange/Kind/written``.
  ///   - handler: Called on a loop's thread with changes, at least one. It is released when the source is invalid and
  ///     no call-out runs.
  /// - Throws: A ``FileChangeError``, for another reason than that the path leads to nothing.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n) in the entries below the path, if recursive.
  public convenience init(
    following path: Path, recursive: Bool = false, events: Events = .all.union(.written),
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(path, recursive, events, isFollowing: true, handler)
  }

  /// Makes a source; tests may give it a queue of its own, and a limit of records that wait.
  init(
    _ path: Path, _ recursive: Bool, _ events: Events, isFollowing: Bool = false, endsWithLoop: Bool = false,
    ownQueue: WatchQueue? = nil, limit: Int = WatchInbox.defaultLimit,
    _ handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    let watcher = try FileWatcher(
      path, recursive: recursive, events: events, isFollowing: isFollowing, limit: limit, ownQueue: ownQueue)
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

  /// How many directories are watched, or one for a file; none when the source is invalid, or follows a path that leads
  /// to nothing.
  ///
  /// Can be used from any thread.
  public var watchCount: Int { lock.ifOwned(else: 0) { watcher?.watchCount ?? 0 } }

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
