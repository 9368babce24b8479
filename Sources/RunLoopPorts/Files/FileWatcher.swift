import CRunLoopSystem
import Glibc
import RunLoopCore

/// Turns the kernel's queue into changes, and keeps the tree of watches up to date.
///
/// **A new directory** is watched and then scanned, so that nothing is missed that was made before its watch; what was made
/// between the watch and the scan is found twice, and told once. **A move** shows itself as two entries of one cookie; the
/// directory that was moved takes its watches with it. **Paths may be out of date** when they are used: the queue tells of
/// the past. So each watch that is added under a name is compared with the one that was expected there.
struct FileWatcher {
  /// How many changes one step gathers before it gives them.
  private static let batch = 1024
  /// How many directories may be on their way from one place to another.
  private static let movingLimit = 1024

  let queue: WatchQueue
  private let root: FileChangeSource.Path
  private let isRecursive: Bool
  private let events: FileChangeSource.Events
  private var tree: WatchTree
  /// Directories that have been moved away, by cookie, with how many times the queue has been empty since.
  private var moving: [UInt32: (watch: Int32, age: Int)] = [:]
  /// Directories to be scanned, the next one last.
  private var unscanned: [Int32] = []
  private var changes: [FileChange] = []
  private(set) var hasEnded = false
  /// Directories that may not be read, as found when all were looked at.
  private(set) var unreadable: [FileChangeSource.Path] = []

  init(
    _ root: FileChangeSource.Path, recursive: Bool, events: FileChangeSource.Events
  ) throws(FileChangeError) {
    do throws(SystemError) { queue = try WatchQueue() } catch { throw .noQueue(error) }
    self.root = root
    self.isRecursive = recursive
    self.events = events
    do throws(SystemError) {
      // Only below the root are links not followed: it is the caller's.
      tree = WatchTree(root: try queue.add(root, events.mask | (recursive ? UInt32(IN_ONLYDIR) : 0)))
    } catch {
      throw .cannotWatch(root, error)
    }
    guard recursive else { return }
    if let failure = watchAll() { throw .cannotWatch(failure.path, failure.error) }
  }

  /// How many directories, or files, are watched.
  var watchCount: Int { tree.count }

  /// What happened, at most a little more than a batch and one directory's entries; nil: nothing is left to do now.
  ///
  /// Each call but the last gives something, or has moved on.
  mutating func step(mayRead: Bool) -> (changes: [FileChange], didRead: Bool)? {
    guard !hasEnded else { return nil }
    var didRead = false
    if unscanned.isEmpty {
      guard mayRead else { return nil }
      read()
      didRead = true
    }
    while changes.count < Self.batch, let next = unscanned.popLast() { scan(next, tells: true) }
    let given = changes
    changes = []
    return (given, didRead)
  }

  private mutating func read() {
    do throws(SystemError) {
      let (entries, isDrained) = try queue.read()
      for entry in entries where !hasEnded { handle(entry) }
      guard isDrained else { return }
      // All scans lie before this read, and so do the entries of what they have found.
      tree.forgetTold()
      dropStrays()
    } catch {
      changes.append(FileChange(.failed(error), root))
      hasEnded = true
    }
  }
}

// MARK: - Entries

extension FileWatcher {
  private mutating func handle(_ entry: WatchQueue.Entry) {
    if entry.has(IN_Q_OVERFLOW) { return overflow() }
    if entry.watch == tree.root, entry.has(IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED) {
      return endWithRoot()
    }
    if entry.has(IN_IGNORED) { return forget(entry.watch) }
    // What has left the tree, or is on its way, has no path.
    guard let directory = path(entry.watch) else { return }
    guard !entry.name.isEmpty else {
      // A directory below the root is told of by its parent.
      if entry.watch == tree.root { tellOfFile(entry, root) }
      return
    }
    let path = directory.appending(entry.name)
    let isDirectory = entry.has(Int32(IN_ISDIR))
    if entry.has(IN_CREATE) {
      if tree.takeTold(entry.name, in: entry.watch) { return }
      tell(.created, path, isDirectory)
      if isDirectory { enter(entry.name, of: entry.watch, path) }
    } else if entry.has(IN_DELETE) {
      _ = tree.takeTold(entry.name, in: entry.watch)
      tell(.removed, path, isDirectory)
      if isDirectory { dropChild(entry.name, of: entry.watch) }
    } else if entry.has(IN_MOVED_FROM) {
      _ = tree.takeTold(entry.name, in: entry.watch)
      tell(.movedFrom, path, isDirectory, entry.cookie)
      if isDirectory { moveAway(entry) }
    } else if entry.has(IN_MOVED_TO) {
      _ = tree.takeTold(entry.name, in: entry.watch)
      tell(.movedTo, path, isDirectory, entry.cookie)
      if isDirectory { moveHere(entry, path) }
    } else {
      tellOfFile(entry, path)
    }
  }

  private mutating func tellOfFile(_ entry: WatchQueue.Entry, _ path: FileChangeSource.Path) {
    let isDirectory = entry.has(Int32(IN_ISDIR))
    if entry.has(IN_MODIFY) { tell(.modified, path, isDirectory) }
    if entry.has(IN_ATTRIB) { tell(.attributes, path, isDirectory) }
  }

  private mutating func tell(
    _ kind: FileChange.Kind, _ path: FileChangeSource.Path, _ isDirectory: Bool, _ cookie: UInt32 = 0
  ) {
    guard events.include(kind) else { return }
    changes.append(FileChange(kind, path, isDirectory: isDirectory, cookie: cookie))
  }

  private func path(_ watch: Int32) -> FileChangeSource.Path? {
    tree.names(to: watch)?.reduce(root) { $0.appending($1) }
  }

  private mutating func endWithRoot() {
    tell(.rootGone, root, isRecursive)
    hasEnded = true
  }

  private mutating func overflow() {
    tell(.overflow, root, isRecursive)
    guard isRecursive else { return }
    // Which directories there are is to be found out anew; whoever is told looks at the rest.
    let before = tree.watches
    tree = WatchTree(root: tree.root)
    moving = [:]
    unreadable = []
    if let failure = watchAll() {
      changes.append(FileChange(.unwatched(failure.error), failure.path, isDirectory: true))
    }
    for watch in before where !tree.contains(watch) { queue.remove(watch) }
  }
}

// MARK: - Directories

extension FileWatcher {
  /// Watches a directory that has appeared under a name, and has it scanned.
  private mutating func enter(_ name: [UInt8], of parent: Int32, _ path: FileChangeSource.Path) {
    guard isRecursive, let watch = watchDirectory(path) else { return }
    if let other = tree.child(name, of: parent), other != watch { drop(other) }
    if tree.place(watch, name, under: parent) { unscanned.append(watch) }
  }

  private mutating func moveAway(_ entry: WatchQueue.Entry) {
    guard let watch = tree.child(entry.name, of: entry.watch) else { return }
    tree.detach(watch)
    if moving.count >= Self.movingLimit, let oldest = moving.min(by: { $0.key < $1.key }) {
      moving[oldest.key] = nil
      drop(oldest.value.watch)
    }
    moving[entry.cookie] = (watch, 0)
  }

  private mutating func moveHere(_ entry: WatchQueue.Entry, _ path: FileChangeSource.Path) {
    guard isRecursive else { return }
    dropChild(entry.name, of: entry.watch)
    guard let moved = moving.removeValue(forKey: entry.cookie)?.watch, tree.contains(moved) else {
      return enter(entry.name, of: entry.watch, path)
    }
    // The name under which it was known may have stood for another by then.
    guard let watch = watchDirectory(path) else { return drop(moved) }
    guard watch == moved else {
      drop(moved)
      if tree.place(watch, entry.name, under: entry.watch) { unscanned.append(watch) }
      return
    }
    if !tree.place(watch, entry.name, under: entry.watch) { drop(watch) }
  }

  private mutating func dropChild(_ name: [UInt8], of parent: Int32) {
    if let watch = tree.child(name, of: parent) { drop(watch) }
  }

  /// Ends the watches of a directory and of all below it.
  private mutating func drop(_ watch: Int32) {
    for removed in tree.remove(watch) { queue.remove(removed) }
  }

  /// The kernel has ended a watch; those below it have been told of, or have moved away.
  private mutating func forget(_ watch: Int32) {
    for removed in tree.remove(watch) where removed != watch { queue.remove(removed) }
  }

  /// Drops what was moved away and has not come back: the other half follows the first at once.
  private mutating func dropStrays() {
    for (cookie, stray) in moving {
      guard stray.age > 0 else {
        moving[cookie] = (stray.watch, 1)
        continue
      }
      moving[cookie] = nil
      drop(stray.watch)
    }
  }

  /// Adds a watch; nil if there is nothing to watch any more, or it is refused, which is told.
  private mutating func watchDirectory(_ path: FileChangeSource.Path) -> Int32? {
    do throws(SystemError) {
      return try queue.add(path, events.mask | UInt32(IN_ONLYDIR | IN_DONT_FOLLOW))
    } catch {
      if !Self.isGone(error) { changes.append(FileChange(.unwatched(error), path, isDirectory: true)) }
      return nil
    }
  }

  /// Looks at a directory's entries: watches its directories, tells of what is there.
  private mutating func scan(_ watch: Int32, tells: Bool) {
    guard let directory = path(watch) else { return }
    var found: [(name: [UInt8], isDirectory: Bool)] = []
    do throws(SystemError) {
      try DirectoryScan.forEach(in: directory, followsLink: watch == tree.root) { found.append(($0, $1)) }
    } catch {
      if !Self.isGone(error) { changes.append(FileChange(.unwatched(error), directory, isDirectory: true)) }
      return
    }
    for (name, isDirectory) in found {
      let path = directory.appending(name)
      if tells {
        tell(.created, path, isDirectory)
        tree.tell(name, in: watch)
      }
      if isDirectory { enter(name, of: watch, path) }
    }
  }

  /// Watches all that is there, without telling of it; gives the first failure, unless it is a directory's permission.
  private mutating func watchAll() -> (path: FileChangeSource.Path, error: SystemError)? {
    let before = changes
    changes = []
    unscanned = [tree.root]
    while let next = unscanned.popLast() {
      scan(next, tells: false)
      for change in changes {
        guard case .unwatched(let error) = change.kind else { continue }
        guard error.number == EACCES, change.path != root else {
          changes = before
          unscanned = []
          return (change.path, error)
        }
        unreadable.append(change.path)
      }
      changes = []
    }
    changes = before
    return nil
  }

  /// Whether a path is not what it was when the queue told of it; what has become of it comes next.
  private static func isGone(_ error: SystemError) -> Bool { [ENOENT, ENOTDIR, ELOOP].contains(error.number) }
}
