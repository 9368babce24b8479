// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// Turns the kernel's records into changes, and keeps the tree of watches up to date.
///
/// The records describe the past, and a path may lead to another file by the time it is used. The tree and the
/// reported changes therefore follow three rules:
///
/// - **A directory is identified by its watch and its identity**, never by its path. A name is looked up in a
///   descriptor of the parent, which has been compared with the parent in the tree.
/// - **A directory that cannot be inspected now is not forgotten.** If it is not where the tree has it, a later record
///   reports its place. Until then, "unscanned" stays with the directory and "unresolved" with the name.
/// - **The tree contains what has been reported.** A directory in the tree has been reported, with its entries if it
///   was scanned. If a directory turns out to differ from the reported one, it is reported as removed and created, and
///   scanned again.
///
/// An entry that is created in a new directory between its watch and its scan is found twice and reported once.
struct FileWatcher {
  /// The number of changes that a step collects before it returns them.
  private static let batch = 1024
  /// The maximum number of directories being moved.
  static let movingLimit = 1024

  struct Moving {
    /// The directory's watch, or `nil` if it has been found elsewhere since.
    let watch: Int32?
    /// The value of `drains` when the directory was moved away.
    let since: Int
  }

  let queue: WatchQueue
  let inbox: WatchInbox
  let root: FileChangeSource.Path
  /// The absolute path of the root, because the working directory may change.
  let place: FileChangeSource.Path
  /// Whether the source continues when its path leads to another file, or to none.
  let isFollowing: Bool
  let isRecursive: Bool
  let events: FileChangeSource.Events
  var tree: WatchTree
  /// Directories that were moved away and have not arrived yet, keyed by cookie.
  var moving: [UInt32: Moving] = [:]
  /// Directories to inspect, with the next one last.
  var toScan: [Int32] = []
  /// Directories that were not where the tree has them when they were inspected.
  var postponed: Set<Int32> = []
  var changes: [FileChange] = []
  var opened = OpenDirectories()
  /// The number of times the queue had been empty: after the last scan, and when the last records were taken.
  var drainsAtScan = 0
  var drains = 0
  private(set) var hasEnded = false
  /// The relevant error of watching a directory on the path, if there was one.
  var wayFailure: SystemError?
  /// Whether the root is a directory, or was one.
  private var isDirectory: Bool
  /// Directories that may not be read, as found by the last full scan.
  private(set) var unreadable: [FileChangeSource.Path] = []

  /// - Parameters:
  ///   - limit: The maximum number of pending records.
  ///   - ownQueue: A separate queue, for tests. Defaults to `nil`, which means that of the process.
  init(
    _ root: FileChangeSource.Path, recursive: Bool, events: FileChangeSource.Events, isFollowing: Bool = false,
    limit: Int = WatchInbox.defaultLimit, ownQueue: WatchQueue? = nil
  ) throws(FileChangeError) {
    guard !root.bytes.contains(0) else { throw .notAPath(root) }
    do throws(SystemError) {
      inbox = try WatchInbox(mask: events.mask, limit: limit)
      if let ownQueue, ownQueue.accept(inbox) { queue = ownQueue } else { queue = try WatchQueue.join(inbox) }
    } catch {
      throw .noQueue(error)
    }
    self.root = root
    self.isRecursive = recursive
    isDirectory = recursive
    self.isFollowing = isFollowing
    self.events = events
    place = root.absolute
    do throws(SystemError) {
      let file = try OpenFile.root(place, isDirectory: recursive)
      let identity = try OpenFile.identity(file)
      tree = WatchTree(root: try queue.add(file, inbox, path: place), identity)
      isDirectory = try OpenFile.type(file) == UInt32(S_IFDIR)
      if recursive { opened.keep(file, of: tree.root) }
    } catch {
      guard isFollowing, OpenFile.isGone(error) else {
        queue.leave(inbox, [])
        throw .cannotWatch(root, error)
      }
      tree = WatchTree(root: Self.noWatch)
    }
    if hasRoot, recursive {
      // If the system rejects one directory, it will reject others, so stop at the first failure.
      if let failure = scanAll(stopsAtFailure: true).first, case .unwatched(let error) = failure.kind {
        close()
        throw .cannotWatch(failure.path, error)
      }
    } else {
      tree.noteScanned(tree.root)
    }
    let found = findPath().identity
    if let wayFailure {
      close()
      throw .cannotWatch(root, wayFailure)
    }
    // The path has changed since the root was opened.
    if found != (hasRoot ? tree.identity(of: tree.root) : nil) { queue.notePathChange(inbox) }
  }

  /// The watch of the root if its path does not exist.
  private static let noWatch: Int32 = -1

  var hasRoot: Bool { tree.root != Self.noWatch }

  var watchCount: Int { hasRoot ? tree.count : 0 }

  func close() { queue.leave(inbox, tree.watches) }

  /// Returns the next changes, at most slightly more than a batch and one directory's entries, or `nil` if there is
  /// nothing to do.
  ///
  /// Each call but the last returns changes or makes progress.
  mutating func step(mayTake: Bool) -> (changes: [FileChange], didTake: Bool)? {
    guard !hasEnded else { return nil }
    let takes = toScan.isEmpty
    if takes {
      guard mayTake, take() else { return nil }
    }
    while changes.count < Self.batch, let next = toScan.popLast() { lookAt(next, reports: true) }
    // Keep no directory open in between: the kernel reports the removal of a directory only when it is closed.
    opened.removeAll()
    let given = changes
    changes = []
    return (given, takes)
  }

  /// Takes records and handles them, or returns false if there were none.
  private mutating func take() -> Bool {
    do throws(SystemError) {
      let taken = try queue.take(for: inbox)
      drains = taken.drains
      // After the path has changed, records of the previous file are irrelevant to a source that follows the path.
      if isFollowing, taken.hasPathChanged || taken.records.contains(where: endsRoot) { checkPath() }
      let before = changes.count
      // A directory below the root is reported by its parent, and its own record would separate those of an exchange.
      var rest = taken.records.filter { !$0.has(IN_MOVE_SELF) || $0.watch == tree.root }[...]
      while !hasEnded, !rest.isEmpty { rest = rest.dropFirst(handleFirst(of: rest)) }
      if !isFollowing, taken.hasPathChanged, !hasEnded { checkPath() }
      // Detected by the name, because the file itself may not have been watched yet.
      if taken.isWritten, isFollowing, hasRoot,
        !changes[before...].contains(where: { $0.kind == .written && $0.path == root })
      {
        report(.written, root, false)
      }
      // The queue was empty after the last scan, so all records of what the scans found have been read.
      if drains > drainsAtScan { tree.forgetReported() }
      dropStrays()
      return !taken.records.isEmpty || taken.hasPathChanged || taken.isWritten || !toScan.isEmpty
    } catch {
      changes.append(FileChange(.failed(error), root))
      hasEnded = true
      return true
    }
  }

  /// Scans the tree without reporting it, and returns the failures to watch directories, except for unreadable ones.
  private mutating func scanAll(stopsAtFailure: Bool) -> [FileChange] {
    let before = changes
    changes = []
    toScan = [tree.root]
    var failures: [FileChange] = []
    while let next = toScan.popLast(), failures.isEmpty || !stopsAtFailure {
      lookAt(next, reports: false)
      for change in changes {
        guard case .unwatched(let error) = change.kind else { continue }
        let isUnreadable = error.number == EACCES && change.path != root
        if isUnreadable { unreadable.append(change.path) } else { failures.append(change) }
      }
      changes = []
    }
    changes = before
    opened.removeAll()
    return failures
  }

  mutating func endWithRoot() {
    report(.rootGone, root, isDirectory)
    hasEnded = true
  }

  mutating func overflow() {
    report(.overflow, root, isDirectory)
    // The records that report the root's place may be among those that were lost.
    let watched = tree.root
    checkPath()
    guard isRecursive, !hasEnded, hasRoot, tree.root == watched, let identity = tree.identity(of: watched) else {
      return
    }
    // Determine the directories again. The caller, notified of the overflow, inspects the rest.
    let before = tree.watches
    tree = WatchTree(root: tree.root, identity)
    moving = [:]
    postponed = []
    unreadable = []
    changes += scanAll(stopsAtFailure: false)
    for watch in before where !tree.contains(watch) { queue.remove(watch, inbox) }
  }
}

// MARK: - The root

extension FileWatcher {
  /// Returns whether a record means that the root is no longer watched, or no longer at its place.
  func endsRoot(_ record: WatchRecord) -> Bool {
    record.watch == tree.root && record.has(IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED)
  }

  /// Looks up the path, and ends or changes the root if the path leads to a file other than the watched one.
  mutating func checkPath() {
    let found = findPath()
    // The cause may also prevent the path from being found, which is reported below.
    if let wayFailure, found.failure == nil {
      changes.append(FileChange(.unwatched(wayFailure), root, isDirectory: isDirectory))
    }
    switch found {
    case .file(let file, let identity):
      do throws(SystemError) {
        // Compare watches instead of identities: a new file may reuse the identity of a removed one, whose watch has
        // ended.
        let watch = try queue.add(file, inbox, path: place)
        guard watch != tree.root else { return }
        if isFollowing { return setRoot(watch, identity, isDirectory: try OpenFile.type(file) == UInt32(S_IFDIR)) }
        queue.remove(watch, inbox)
        endWithRoot()
      } catch {
        if isFollowing {
          removeRoot()
        } else if identity != tree.identity(of: tree.root) {
          return endWithRoot()
        }
        changes.append(FileChange(.unwatched(error), root, isDirectory: isDirectory))
      }
    case .nothing: if isFollowing { removeRoot() } else { endWithRoot() }
    case .failed(let error): changes.append(FileChange(.unwatched(error), root, isDirectory: isDirectory))
    }
  }

  private mutating func setRoot(_ watch: Int32, _ identity: WatchTree.Identity, isDirectory: Bool) {
    self.isDirectory = isDirectory
    changes.append(FileChange(hasRoot ? .replaced : .created, root, isDirectory: isDirectory))
    replaceTree(by: WatchTree(root: watch, identity))
    if isDirectory { toScan = [watch] } else { tree.noteScanned(watch) }
  }

  private mutating func removeRoot() {
    guard hasRoot else { return }
    changes.append(FileChange(.removed, root, isDirectory: isDirectory))
    replaceTree(by: WatchTree(root: Self.noWatch))
  }

  private mutating func replaceTree(by other: WatchTree) {
    let before = tree.watches
    tree = other
    moving = [:]
    postponed = []
    toScan = []
    opened.removeAll()
    for watch in before where watch != other.root { queue.remove(watch, inbox) }
  }
}

extension FileWatcher {
  mutating func report(
    _ kind: FileChange.Kind, _ path: FileChangeSource.Path, _ isDirectory: Bool, _ cookie: UInt32 = 0
  ) {
    guard events.include(kind) else { return }
    changes.append(FileChange(kind, path, isDirectory: isDirectory, cookie: cookie))
  }

  func path(_ watch: Int32) -> FileChangeSource.Path? {
    tree.names(to: watch)?.reduce(root) { $0.appending($1) }
  }
}
