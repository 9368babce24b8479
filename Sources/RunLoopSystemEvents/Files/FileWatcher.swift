// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// Turns the kernel's records into changes, and keeps the tree of watches up to date.
///
/// The records tell of the past, and a path may mean another file by the time it is used. So the tree and the changes
/// that are reported obey three rules:
///
/// - **A directory is known by what it is**, its watch and its identity, never by its path. Whatever is looked up under
///   a name is looked up in a descriptor of the parent, which has been compared with the parent in the tree.
/// - **Nothing that cannot be looked at now is forgotten.** If a directory is not where the tree has it, the record
///   that says where it is comes later: "not scanned yet" stays with the directory, "not looked at yet" with the name,
///   until it has been placed anew.
/// - **The tree is what has been reported.** A directory in the tree has been reported, with its entries if it has been
///   scanned. A directory that turns out to be another than the reported one is reported as removed and created, and
///   scanned afresh.
///
/// What was made in a new directory between its watch and its scan is found twice and reported once.
struct FileWatcher {
  /// How many changes one step gathers before it returns them.
  private static let batch = 1024
  /// How many directories may be on their way from one place to another.
  static let movingLimit = 1024

  /// A directory that has been moved away.
  struct Moving {
    /// Nil if it has been found elsewhere since.
    let watch: Int32?
    /// How many times the queue had been found empty by then.
    let since: Int
  }

  let queue: WatchQueue
  let inbox: WatchInbox
  let root: FileChangeSource.Path
  /// The same from the root of the system: the working directory may change.
  let place: FileChangeSource.Path
  /// Whether the source continues when its path leads to another file, or to none.
  let isFollowing: Bool
  let isRecursive: Bool
  let events: FileChangeSource.Events
  var tree: WatchTree
  /// Directories that have been moved away and not yet arrived, by cookie.
  var moving: [UInt32: Moving] = [:]
  /// Directories to be looked at, the next one last.
  var toScan: [Int32] = []
  /// Directories that were not where the tree has them when they were to be looked at.
  var postponed: Set<Int32> = []
  var changes: [FileChange] = []
  var opened = OpenDirectories()
  /// How many times the queue had been found empty: after the last scan, and when the last records were taken.
  var drainsAtScan = 0
  var drains = 0
  private(set) var hasEnded = false
  /// Why a directory on the way could not be watched, if that matters.
  var wayFailure: SystemError?
  /// Whether the root is a directory, or was one.
  private var isDirectory: Bool
  /// Directories that may not be read, as found when all were looked at.
  private(set) var unreadable: [FileChangeSource.Path] = []

  /// - Parameters:
  ///   - limit: How many records may wait.
  ///   - ownQueue: A queue of its own, for tests; nil: that of the process.
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
      // Where the system rejects one it will reject others.
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
    // It has changed since it was opened.
    if found != (hasRoot ? tree.identity(of: tree.root) : nil) { queue.notePathChange(inbox) }
  }

  /// The root of a tree whose path leads to no file.
  private static let noWatch: Int32 = -1

  /// Whether the path leads to a file.
  var hasRoot: Bool { tree.root != Self.noWatch }

  /// How many directories, or files, are watched.
  var watchCount: Int { hasRoot ? tree.count : 0 }

  /// Ends all watches.
  func close() { queue.leave(inbox, tree.watches) }

  /// What happened, at most a little more than a batch and one directory's entries; nil: nothing is left to do now.
  ///
  /// Each call but the last returns something, or has moved on.
  mutating func step(mayTake: Bool) -> (changes: [FileChange], didTake: Bool)? {
    guard !hasEnded else { return nil }
    let takes = toScan.isEmpty
    if takes {
      guard mayTake, take() else { return nil }
    }
    while changes.count < Self.batch, let next = toScan.popLast() { lookAt(next, reports: true) }
    // None is kept open while others run: the kernel reports the end of a directory when nobody has it open.
    opened.removeAll()
    let given = changes
    changes = []
    return (given, takes)
  }

  /// Takes records and handles them; false if there were none.
  private mutating func take() -> Bool {
    do throws(SystemError) {
      let taken = try queue.take(for: inbox)
      drains = taken.drains
      // What happened to a file that is no longer the one at the path says nothing of the path that is followed.
      if isFollowing, taken.hasPathChanged || taken.records.contains(where: endsRoot) { checkPath() }
      let before = changes.count
      // A directory below the root is reported by its parent, and its own record is between those of an exchange.
      var rest = taken.records.filter { !$0.has(IN_MOVE_SELF) || $0.watch == tree.root }[...]
      while !hasEnded, !rest.isEmpty { rest = rest.dropFirst(handleFirst(of: rest)) }
      if !isFollowing, taken.hasPathChanged, !hasEnded { checkPath() }
      // By its name: the file itself may not have been watched yet.
      if taken.isWritten, isFollowing, hasRoot,
        !changes[before...].contains(where: { $0.kind == .written && $0.path == root })
      {
        report(.written, root, false)
      }
      // All scans lie before the last time that the queue was empty, and so do the records of what they have found.
      if drains > drainsAtScan { tree.forgetReported() }
      dropStrays()
      return !taken.records.isEmpty || taken.hasPathChanged || taken.isWritten || !toScan.isEmpty
    } catch {
      changes.append(FileChange(.failed(error), root))
      hasEnded = true
      return true
    }
  }

  /// Looks at all that is there, without reporting it; returns what could not be watched for another reason than a
  /// directory's permission.
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
    // The records that say where the root is may be among those that were lost.
    let watched = tree.root
    checkPath()
    guard isRecursive, !hasEnded, hasRoot, tree.root == watched, let identity = tree.identity(of: watched) else {
      return
    }
    // Which directories there are is to be found out anew; whoever is notified looks at the rest.
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
  /// Whether a record says that the root is no longer watched, or no longer where it was.
  func endsRoot(_ record: WatchRecord) -> Bool {
    record.watch == tree.root && record.has(IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED)
  }

  /// Looks where the path leads, and ends or changes the root if that is another file than the one that is watched.
  mutating func checkPath() {
    let found = findPath()
    // One cause may keep the path from being found, too, which is reported below.
    if let wayFailure, found.failure == nil {
      changes.append(FileChange(.unwatched(wayFailure), root, isDirectory: isDirectory))
    }
    switch found {
    case .file(let file, let identity):
      do throws(SystemError) {
        // Not by the identity: a new file may have that of one that is gone, whose watch has ended.
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
