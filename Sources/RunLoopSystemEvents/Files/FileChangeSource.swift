// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A source that calls its handler with the changes of a file, a directory, or a directory tree.
///
/// In a tree, new directories are watched at once, together with everything already in them, and directories that are
/// moved within the tree are followed. Symbolic links below the watched path are not followed. The source reports what
/// the kernel reports: changes made on this machine, under any watched name. It does not notice writes through a
/// memory mapping.
///
/// The source watches a path, including each link and directory that leads to it. The source ends with
/// ``FileChange/Kind/rootGone`` when the path no longer leads to the same file. A source created by
/// ``init(following:recursive:events:handler:)-(FileChangeSource.Path,_,_,_)`` instead continues with the file that
/// the path then leads to. A directory on the path that this process may not read is not watched. A relative path is
/// resolved when the source is created.
///
/// The source can be in any number of modes of any number of loops; each change is reported once, by one of them.
/// Changes that occur before the source is in a mode are kept, up to a limit. All sources of a process share one queue
/// of the kernel, and `/proc` must be mounted. The memory use grows with the number of directories, which the kernel
/// limits for each user, and with part of the largest directory that appears.
///
/// The corresponding kernel facility is `inotify`.
public final class FileChangeSource: @unchecked Sendable {
  // Sendable: the lock guards the watcher.

  /// The watched path.
  public let path: Path
  /// The changes to report.
  public let events: Events
  /// The directories that were not watched when the source was created, because this process may not read them.
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

  /// Creates a source that is in no mode.
  ///
  /// The kernel records changes from now on. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - path: A file or a directory. For a directory, changes of its entries are reported.
  ///   - recursive: Whether to watch all directories below as well. The default is false.
  ///   - events: The changes to report; ``Events/all`` by default.
  ///   - handler: Called on a loop's thread with at least one change, in the order in which they occurred. It is
  ///     released when the source is invalid and no call-out is running.
  /// - Throws: A ``FileChangeError``.
  /// - Complexity: O(*n*), where *n* is the number of entries below the path, if `recursive` is set.
  public convenience init(
    path: Path, recursive: Bool = false, events: Events = .all,
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(path, recursive, events, endsWithLoop: false, handler)
  }

  /// Creates a source that follows its path and is in no mode.
  ///
  /// The kernel records changes from now on. The path need not exist yet, and can lead to different files over time,
  /// for example when an editor replaces a file at each save, a directory is removed and created again, or a link on
  /// the path is changed. The source reports ``FileChange/Kind/replaced`` when the path leads to another file,
  /// ``FileChange/Kind/removed`` when it no longer leads to a file, and ``FileChange/Kind/created`` when it does again,
  /// always for the path itself. The entries of a new directory are then reported as created. The source ends only when
  /// it is invalidated, or with ``FileChange/Kind/failed(_:)``.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - path: The path of a file or a directory. For a directory, changes of its entries are reported.
  ///   - recursive: Whether to watch all directories below as well, in which case a file at the path is ignored. The
  ///     default is false.
  ///   - events: The changes to report; by default ``Events/all`` and ``Events/written``.
  ///   - handler: Called on a loop's thread with at least one change. It is released when the source is invalid and no
  ///     call-out is running.
  /// - Throws: A ``FileChangeError``, unless the path just does not exist.
  /// - Complexity: O(*n*), where *n* is the number of entries below the path, if `recursive` is set.
  public convenience init(
    following path: Path, recursive: Bool = false, events: Events = .all.union(.written),
    handler: @escaping @Sendable (FileChangeSource, [FileChange]) -> Void
  ) throws(FileChangeError) {
    try self.init(path, recursive, events, isFollowing: true, handler)
  }

  /// Creates a source, optionally with a queue of its own and a limit of pending records for tests.
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

  /// Whether the source is valid, so that it can be added to a loop and called.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { loopRegistration.isOpen }

  /// The number of watched directories, or one for a file.
  ///
  /// Zero if the source is invalid or follows a path that does not exist. Can be used from any thread.
  public var watchCount: Int { lock.ifOwned(else: 0) { watcher?.watchCount ?? 0 } }

  /// Permanently invalidates the source: it leaves all modes of all loops and is not called again.
  ///
  /// The handler is released at once, or when a running call-out has returned. Can be called from any thread. Calling
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
      // Read only once per call. The descriptor stays ready, and other items are served in between.
      if step.didTake { mayTake = false }
      guard let handler = handler.held else { return }
      if hasEnded { invalidate() }
      if !step.changes.isEmpty {
        noteCall(of: handler)
        handler.body(self, step.changes)
        // The handler may have moved the source to another loop, which then reports the rest.
        guard loopRegistration.isHere else {
          return lock.ifOwned { if let watcher { watcher.queue.notePathChange(watcher.inbox) } }
        }
      }
    }
  }

  func hasLeft() { if endsWithLoop { invalidate() } }

  package var keepAliveKind: KeepAliveKind { .files }
  package var keepAliveDetail: String { "changes of \(path)" }
}

extension FileChangeSource: CustomDebugStringConvertible {
  /// The source's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String { itemDescription(self, "path = \(path), watches = \(watchCount)") }
}
