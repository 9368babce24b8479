// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

// MARK: - Inspection of directories, each through a descriptor of its parent
extension FileWatcher {
  enum Found {
    case directory(OwnedDescriptor, WatchTree.Identity)
    /// The name no longer exists or is not a directory, which a record reports.
    case gone
    /// The parent directory is not where the tree has it, which a record reports.
    case parentIsElsewhere
    case failed(SystemError)

    var identity: WatchTree.Identity? {
      if case .directory(_, let identity) = self { identity } else { nil }
    }
  }

  /// Looks up a directory in another directory of the tree.
  mutating func find(_ name: [UInt8], in parent: Int32) -> Found {
    switch open(parent) {
    case .directory(let descriptor, _): Self.find(name, in: descriptor)
    case .gone, .parentIsElsewhere: .parentIsElsewhere
    case .failed(let error): .failed(error)
    }
  }

  private static func find(_ name: [UInt8], in parent: OwnedDescriptor) -> Found {
    do throws(SystemError) {
      let descriptor = try OpenFile.directory(name, in: parent)
      return .directory(descriptor, try OpenFile.identity(descriptor))
    } catch {
      return OpenFile.isGone(error) ? .gone : .failed(error)
    }
  }

  /// Opens a directory of the tree, name by name, and checks that each directory is the one recorded in the tree.
  mutating func open(_ watch: Int32) -> Found {
    var names: [(watch: Int32, name: [UInt8])] = []
    var current = watch
    while opened[current] == nil, let position = tree.position(of: current) {
      names.append((current, position.name))
      current = position.parent
    }
    var found: Found
    if let descriptor = opened[current], let identity = tree.identity(of: current) {
      found = .directory(descriptor, identity)
    } else {
      guard current == tree.root else { return .parentIsElsewhere }
      found = openRoot()
    }
    for (watch, name) in names.reversed() {
      guard case .directory(let parent, _) = found else { return found }
      found = Self.find(name, in: parent)
      if let identity = found.identity, identity != tree.identity(of: watch) { return .gone }
    }
    if case .directory(let descriptor, _) = found { opened.keep(descriptor, of: watch) }
    return found
  }

  private mutating func openRoot() -> Found {
    do throws(SystemError) {
      let descriptor = try OpenFile.root(place, isDirectory: true)
      let identity = try OpenFile.identity(descriptor)
      guard identity == tree.identity(of: tree.root) else { return .gone }
      opened.keep(descriptor, of: tree.root)
      return .directory(descriptor, identity)
    } catch {
      return OpenFile.isGone(error) ? .gone : .failed(error)
    }
  }
}

extension FileWatcher {
  /// Adds a directory that was found under a name to the tree, to be scanned.
  mutating func enter(
    _ descriptor: OwnedDescriptor, _ identity: WatchTree.Identity, _ name: [UInt8], of parent: Int32,
    _ path: FileChangeSource.Path
  ) {
    do throws(SystemError) {
      var watch = try queue.add(descriptor, inbox)
      if tree.contains(watch) {
        // A directory that is mounted within itself, or twice, is watched under its first name.
        guard !tree.isBelow(parent, watch), !isStillThere(watch, identity) else { return }
        // The directory was moved, and the record of the move follows. Report it at its new place.
        let place = tree.position(of: watch)
        if let before = self.path(watch) {
          report(.removed, before, true)
          // The directory that replaced it was reported, but has not been scanned yet.
          if let place, tree.unresolved(in: place.parent).contains(place.name) { report(.created, before, true) }
        }
        drop(watch)
        watch = try queue.add(descriptor, inbox)
      }
      guard tree.place(watch, name, under: parent, identity) else { return queue.remove(watch, inbox) }
      opened.keep(descriptor, of: watch)
      toScan.append(watch)
    } catch {
      changes.append(FileChange(.unwatched(error), path, isDirectory: true))
    }
  }

  /// Returns whether a directory of the tree is where the tree has it.
  private mutating func isStillThere(_ watch: Int32, _ identity: WatchTree.Identity) -> Bool {
    guard let position = tree.position(of: watch) else { return false }
    return find(position.name, in: position.parent).identity == identity
  }

  /// Records a name of a directory to be inspected after its parent has been placed again.
  mutating func postpone(_ name: [UInt8], in parent: Int32) {
    tree.postpone(name, in: parent)
    postponed.insert(parent)
  }

  /// Retries what was postponed, because directories have been placed again.
  mutating func retryPostponed() {
    toScan += postponed
    postponed = []
  }

  /// Scans a directory, or inspects the postponed names in it.
  mutating func lookAt(_ watch: Int32, reports: Bool) {
    guard let directory = path(watch) else {
      // The directory is being moved; it is placed or dropped later.
      if tree.contains(watch) { postponed.insert(watch) }
      return
    }
    let (names, doubtful) = (tree.unresolved(in: watch), tree.doubtful(in: watch))
    guard tree.isUnscanned(watch) || !names.isEmpty || !doubtful.isEmpty else { return }
    switch open(watch) {
    case .directory(let descriptor, _):
      for name in names { tree.settle(name, in: watch) }
      tree.settleDoubts(in: watch)
      if tree.isUnscanned(watch) {
        scan(watch, descriptor, directory, reports: reports)
      } else {
        for name in names { resolve(name, in: watch, descriptor, directory.appending(name)) }
        for name in doubtful { settle(name, in: watch, descriptor, directory.appending(name)) }
      }
    case .gone, .parentIsElsewhere: postponed.insert(watch)
    case .failed(let error):
      tree.noteScanned(watch)
      changes.append(FileChange(.unwatched(error), directory, isDirectory: true))
    }
  }

  /// Reports a directory's entries, and adds its subdirectories to the tree.
  private mutating func scan(
    _ watch: Int32, _ descriptor: OwnedDescriptor, _ directory: FileChangeSource.Path, reports: Bool
  ) {
    tree.noteScanned(watch)
    var found: [(name: [UInt8], isDirectory: Bool)] = []
    do throws(SystemError) {
      try DirectoryScan.forEach(in: descriptor) { found.append(($0, $1)) }
    } catch {
      if !OpenFile.isGone(error) { changes.append(FileChange(.unwatched(error), directory, isDirectory: true)) }
      return
    }
    for (name, isDirectory) in found {
      let path = directory.appending(name)
      if reports {
        report(.created, path, isDirectory)
        tree.noteReported(name, in: watch)
      }
      guard isDirectory, isRecursive else { continue }
      switch Self.find(name, in: descriptor) {
      case .directory(let descriptor, let identity): enter(descriptor, identity, name, of: watch, path)
      case .gone, .parentIsElsewhere: break
      case .failed(let error): changes.append(FileChange(.unwatched(error), path, isDirectory: true))
      }
    }
    drainsAtScan = queue.drainCount
  }

  /// Returns whether a name is a directory and not a link to one, or `nil` if it does not exist.
  static func isDirectory(_ name: [UInt8], in parent: OwnedDescriptor) -> Bool? {
    (try? OpenFile.type(OpenFile.entry(name, in: parent))).map { $0 == UInt32(S_IFDIR) }
  }

  /// Inspects a name that was reported as moved away, and reports the entry that has replaced it, if there is one.
  private mutating func settle(
    _ name: [UInt8], in watch: Int32, _ parent: OwnedDescriptor, _ path: FileChangeSource.Path
  ) {
    guard let isDirectory = Self.isDirectory(name, in: parent) else { return }
    drainsAtScan = queue.drainCount
    guard isDirectory, isRecursive else {
      report(.created, path, isDirectory)
      return tree.noteReported(name, in: watch)
    }
    switch Self.find(name, in: parent) {
    case .directory(let descriptor, let identity):
      if let child = tree.child(name, of: watch), tree.identity(of: child) == identity { return }
      replaceChild(name, of: watch, path)
      report(.created, path, true)
      tree.noteReported(name, in: watch)
      enter(descriptor, identity, name, of: watch, path)
    case .gone, .parentIsElsewhere: break
    case .failed(let error): changes.append(FileChange(.unwatched(error), path, isDirectory: true))
    }
  }

  /// Inspects a name where a directory has appeared that was not inspected before.
  mutating func resolve(
    _ name: [UInt8], in watch: Int32, _ parent: OwnedDescriptor, _ path: FileChangeSource.Path
  ) {
    switch Self.find(name, in: parent) {
    case .directory(let descriptor, let identity):
      if let child = tree.child(name, of: watch) {
        guard tree.identity(of: child) != identity || tree.hasMissed(child) else { return }
        replaceChild(name, of: watch, path)
        report(.created, path, true)
      }
      enter(descriptor, identity, name, of: watch, path)
    case .gone, .parentIsElsewhere: break
    case .failed(let error): changes.append(FileChange(.unwatched(error), path, isDirectory: true))
    }
  }
}
