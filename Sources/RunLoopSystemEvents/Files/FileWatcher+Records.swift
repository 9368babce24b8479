// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

// MARK: - The kernel's records
extension FileWatcher {
  mutating func handle(_ record: WatchRecord) {
    if record.has(IN_Q_OVERFLOW) { return overflow() }
    if endsRoot(record) {
      // A source that follows its path has already checked it.
      guard !isFollowing else { return }
      // The file may have been moved under another of its names.
      if record.has(IN_MOVE_SELF) { checkPath() } else { endWithRoot() }
      return
    }
    // When a file system is unmounted, another directory has the name of its root.
    if record.has(IN_UNMOUNT), let place = tree.position(of: record.watch), let path = path(record.watch),
      case .directory(let parent, _) = open(place.parent)
    {
      return resolve(place.name, in: place.parent, parent, path)
    }
    if record.has(IN_IGNORED) { return forget(record.watch) }
    guard let directory = path(record.watch) else {
      // The directory has left the tree or is being moved.
      if !record.name.isEmpty { tree.noteMissed(in: record.watch) }
      return
    }
    guard !record.name.isEmpty else {
      // A directory below the root is reported by its parent.
      if record.watch == tree.root { reportFile(record, root) }
      return
    }
    // The scan will find the result of this change.
    if tree.isUnscanned(record.watch) { return }
    handle(record, directory.appending(record.name))
  }

  /// Handles the first record, or the first few if they belong together, and returns how many were handled.
  mutating func handleFirst(of records: ArraySlice<WatchRecord>) -> Int {
    if let exchange = WatchRecord.Exchange(records), handle(exchange) { return WatchRecord.Exchange.count }
    if let first = records.first { handle(first) }
    return 1
  }

  private mutating func handle(_ record: WatchRecord, _ path: FileChangeSource.Path) {
    let (parent, name) = (record.watch, record.name)
    let isDirectory = record.has(Int32(IN_ISDIR))
    if record.has(IN_CREATE, IN_DELETE, IN_MOVED_FROM, IN_MOVED_TO),
      tree.noteChange(
        of: name, in: parent, isArrival: record.has(IN_MOVED_TO), isDeparture: record.has(IN_MOVED_FROM))
    {
      toScan.append(parent)
    }
    if record.has(IN_CREATE) {
      if tree.takeReported(name, in: parent) { return }
      appear(record, path, .created)
    } else if record.has(IN_DELETE) {
      _ = tree.takeReported(name, in: parent)
      tree.settle(name, in: parent)
      report(.removed, path, isDirectory)
      dropChild(name, of: parent)
    } else if record.has(IN_MOVED_FROM) {
      _ = tree.takeReported(name, in: parent)
      tree.settle(name, in: parent)
      report(.movedFrom, path, isDirectory, record.cookie)
      if isDirectory { moveAway(record) } else { dropChild(name, of: parent) }
    } else if record.has(IN_MOVED_TO) {
      _ = tree.takeReported(name, in: parent)
      if isDirectory, isRecursive { moveHere(record, path) } else { appear(record, path, .movedTo) }
    } else {
      reportFile(record, path)
    }
  }

  private mutating func reportFile(_ record: WatchRecord, _ path: FileChangeSource.Path) {
    let isDirectory = record.has(Int32(IN_ISDIR))
    if record.has(IN_MODIFY) { report(.modified, path, isDirectory) }
    if record.has(IN_ATTRIB) { report(.attributes, path, isDirectory) }
    if record.has(IN_CLOSE_WRITE) { report(.written, path, isDirectory) }
  }
}

// MARK: - Exchanged names

extension FileWatcher {
  /// Reports two exchanged names, both departures before both arrivals.
  ///
  /// Returns false if the directories do not confirm the exchange. The kernel reports the move of the first name
  /// completely, and then that of the second, whose old name the first has by then. Moving one entry there and back
  /// looks the same.
  private mutating func handle(_ exchange: WatchRecord.Exchange) -> Bool {
    let (one, other) = (exchange.first, exchange.second)
    guard let onePath = path(one.watch)?.appending(one.name), let otherPath = path(other.watch)?.appending(other.name),
      !tree.isUnscanned(one.watch), !tree.isUnscanned(other.watch)
    else { return false }
    let kinds = (one: one.has(Int32(IN_ISDIR)), other: other.has(Int32(IN_ISDIR)))
    let first = isRecursive && kinds.one ? tree.child(one.name, of: one.watch) : nil
    let second = isRecursive && kinds.other ? tree.child(other.name, of: other.watch) : nil
    if isRecursive, kinds.one || kinds.other {
      guard !kinds.one || isThere(first, other), !kinds.other || isThere(second, one) else { return false }
    } else {
      guard isThere(other, kinds.one), isThere(one, kinds.other) else { return false }
    }
    for record in [one, other] {
      _ = tree.noteChange(of: record.name, in: record.watch, isArrival: false, isDeparture: false)
      _ = tree.takeReported(record.name, in: record.watch)
      tree.settle(record.name, in: record.watch)
    }
    report(.movedFrom, onePath, kinds.one, one.cookie)
    report(.movedFrom, otherPath, kinds.other, other.cookie)
    report(.movedTo, otherPath, kinds.one, one.cookie)
    report(.movedTo, onePath, kinds.other, other.cookie)
    for child in [first, second] { if let child { tree.detach(child) } }
    if let first, !tree.place(first, other.name, under: other.watch) { drop(first) }
    if let second, !tree.place(second, one.name, under: one.watch) { drop(second) }
    retryPostponed()
    return true
  }

  /// Returns whether a directory of the tree now has the name of a record, and no change in it was missed.
  private mutating func isThere(_ child: Int32?, _ record: WatchRecord) -> Bool {
    guard let child, !tree.hasMissed(child), let identity = find(record.name, in: record.watch).identity else {
      return false
    }
    return identity == tree.identity(of: child)
  }

  /// Returns whether a name now exists, as a directory or not as required.
  private mutating func isThere(_ record: WatchRecord, _ isDirectory: Bool) -> Bool {
    guard case .directory(let parent, _) = open(record.watch) else { return false }
    return Self.isDirectory(record.name, in: parent) == isDirectory
  }
}

// MARK: - Moving and removing directories

extension FileWatcher {
  /// Reports an entry that has appeared under a name, and adds it to the tree if it is a directory.
  private mutating func appear(_ record: WatchRecord, _ path: FileChangeSource.Path, _ kind: FileChange.Kind) {
    let (parent, name) = (record.watch, record.name)
    let isDirectory = record.has(Int32(IN_ISDIR))
    guard isDirectory, isRecursive else {
      replaceChild(name, of: parent, path)
      return report(kind, path, isDirectory, record.cookie)
    }
    tree.settle(name, in: parent)
    let found = find(name, in: parent)
    // A scan found this directory before its record was read.
    if let child = tree.child(name, of: parent), let identity = found.identity, tree.identity(of: child) == identity {
      return
    }
    replaceChild(name, of: parent, path)
    report(kind, path, true, record.cookie)
    switch found {
    case .directory(let descriptor, let identity): enter(descriptor, identity, name, of: parent, path)
    case .parentIsElsewhere: postpone(name, in: parent)
    case .gone: break
    case .failed(let error): changes.append(FileChange(.unwatched(error), path, isDirectory: true))
    }
  }

  private mutating func moveAway(_ record: WatchRecord) {
    guard let watch = tree.child(record.name, of: record.watch) else { return }
    tree.detach(watch)
    if moving.count >= Self.movingLimit, let oldest = moving.min(by: { $0.value.since < $1.value.since }) {
      moving[oldest.key] = nil
      if let watch = oldest.value.watch { drop(watch) }
    }
    let other = moving.updateValue(Moving(watch: watch, since: drains), forKey: record.cookie)
    if let watch = other?.watch { drop(watch) }
  }

  private mutating func moveHere(_ record: WatchRecord, _ path: FileChangeSource.Path) {
    let (parent, name) = (record.watch, record.name)
    guard let half = moving.removeValue(forKey: record.cookie) else { return appear(record, path, .movedTo) }
    // The directory was found elsewhere in the meantime, so changes reported below its old name do not apply.
    guard let moved = half.watch else { return appear(record, path, .created) }
    tree.settle(name, in: parent)
    let found = find(name, in: parent)
    if let identity = found.identity, tree.identity(of: moved) != identity || tree.hasMissed(moved) {
      // Another directory had the old name, or changes made during the move were missed.
      drop(moved)
      return appear(record, path, .created)
    }
    replaceChild(name, of: parent, path)
    report(.movedTo, path, true, record.cookie)
    switch found {
    case .failed(let error):
      drop(moved)
      changes.append(FileChange(.unwatched(error), path, isDirectory: true))
      return
    // If it has been moved on, a later record reports the destination.
    case .directory, .gone: break
    case .parentIsElsewhere: postpone(name, in: parent)
    }
    guard tree.place(moved, name, under: parent) else { return drop(moved) }
    retryPostponed()
  }

  private mutating func dropChild(_ name: [UInt8], of parent: Int32) {
    if let watch = tree.child(name, of: parent) { drop(watch) }
  }

  /// Drops the directory of a name that now refers to something else, and reports the removal.
  mutating func replaceChild(_ name: [UInt8], of parent: Int32, _ path: FileChangeSource.Path) {
    guard let watch = tree.child(name, of: parent) else { return }
    report(.removed, path, true)
    drop(watch)
  }

  /// Ends the watches of a directory and of all its descendants.
  mutating func drop(_ watch: Int32) {
    for removed in tree.remove(watch) { queue.remove(removed, inbox) }
    forgetMoving()
  }

  /// Handles a watch that the kernel has ended, whose descendants have been reported or were moved away.
  private mutating func forget(_ watch: Int32) {
    for removed in tree.remove(watch) where removed != watch { queue.remove(removed, inbox) }
    forgetMoving()
  }

  /// Clears the watches of dropped directories in `moving`: if another source uses the same watch, its number may
  /// reappear.
  private mutating func forgetMoving() {
    for (cookie, lost) in moving where lost.watch.map({ !tree.contains($0) }) ?? false {
      moving[cookie] = Moving(watch: nil, since: lost.since)
    }
  }

  /// Drops directories that were moved away and have not arrived; the second half of a move follows the first directly.
  mutating func dropStrays() {
    for (cookie, stray) in moving where drains > stray.since {
      moving[cookie] = nil
      if let watch = stray.watch { drop(watch) }
    }
    if drains > drainsAtScan { retryPostponed() }
  }
}
