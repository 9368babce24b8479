// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

// What the kernel's records mean.
extension FileWatcher {
  mutating func handle(_ record: WatchRecord) {
    if record.has(IN_Q_OVERFLOW) { return overflow() }
    if record.watch == tree.root, record.has(IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED) {
      return endWithRoot()
    }
    if record.has(IN_IGNORED) { return forget(record.watch) }
    guard let directory = path(record.watch) else {
      // It has left the tree or is on its way.
      if !record.name.isEmpty { tree.noteMissed(in: record.watch) }
      return
    }
    guard !record.name.isEmpty else {
      // A directory below the root is reported by its parent.
      if record.watch == tree.root { reportFile(record, root) }
      return
    }
    // The scan will find what has come of it.
    if isRecursive, tree.isUnscanned(record.watch) { return }
    handle(record, directory.appending(record.name))
  }

  private mutating func handle(_ record: WatchRecord, _ path: FileChangeSource.Path) {
    let (parent, name) = (record.watch, record.name)
    let isDirectory = record.has(Int32(IN_ISDIR))
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
  }
}

// MARK: - Directories that come and go

extension FileWatcher {
  /// Something has appeared under a name: reports it, and enters it if it is a directory.
  private mutating func appear(_ record: WatchRecord, _ path: FileChangeSource.Path, _ kind: FileChange.Kind) {
    let (parent, name) = (record.watch, record.name)
    let isDirectory = record.has(Int32(IN_ISDIR))
    guard isDirectory, isRecursive else {
      replaceChild(name, of: parent, path)
      return report(kind, path, isDirectory, record.cookie)
    }
    tree.settle(name, in: parent)
    let found = find(name, in: parent)
    // A scan has found this one before its record was read.
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
    // It has been found elsewhere meanwhile: what was reported below its name does not come along.
    guard let moved = half.watch else { return appear(record, path, .created) }
    tree.settle(name, in: parent)
    let found = find(name, in: parent)
    if let identity = found.identity, tree.identity(of: moved) != identity || tree.hasMissed(moved) {
      // Another directory had the name that this one was known by, or not all that happened on the way is known.
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
    // Where it has gone from here, a later record says.
    case .directory, .gone: break
    case .parentIsElsewhere: postpone(name, in: parent)
    }
    guard tree.place(moved, name, under: parent) else { return drop(moved) }
    retryPostponed()
  }

  private mutating func dropChild(_ name: [UInt8], of parent: Int32) {
    if let watch = tree.child(name, of: parent) { drop(watch) }
  }

  /// Drops the directory of a name that turns out to be something else, and reports that.
  mutating func replaceChild(_ name: [UInt8], of parent: Int32, _ path: FileChangeSource.Path) {
    guard let watch = tree.child(name, of: parent) else { return }
    report(.removed, path, true)
    drop(watch)
  }

  /// Ends the watches of a directory and of all below it.
  mutating func drop(_ watch: Int32) {
    for removed in tree.remove(watch) { queue.remove(removed, inbox) }
    forgetMoving()
  }

  /// The kernel has ended a watch; those below it have been reported, or have moved away.
  private mutating func forget(_ watch: Int32) {
    for removed in tree.remove(watch) where removed != watch { queue.remove(removed, inbox) }
    forgetMoving()
  }

  /// What has been dropped is not on its way any more: if another source has the watch too, its number may come back.
  private mutating func forgetMoving() {
    for (cookie, lost) in moving where lost.watch.map({ !tree.contains($0) }) ?? false {
      moving[cookie] = Moving(watch: nil, since: lost.since)
    }
  }

  /// Drops what was moved away and has not come back: the other half follows the first at once.
  mutating func dropStrays() {
    for (cookie, stray) in moving where drains > stray.since {
      moving[cookie] = nil
      if let watch = stray.watch { drop(watch) }
    }
    if drains > drainsAtScan { retryPostponed() }
  }
}
