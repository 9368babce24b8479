// SPDX-License-Identifier: Apache-2.0

/// The tree of watched directories, keyed by watch: a value without side effects.
///
/// A directory stores its name and its parent, so moving one with all its descendants is a single step, and paths are
/// computed when they are needed. A directory that was moved away, and may arrive elsewhere, has no parent and no path.
struct WatchTree {
  typealias Watch = Int32
  typealias Name = [UInt8]

  /// Distinguishes a directory from all others that exist at the same time.
  struct Identity: Hashable {
    var device: UInt64 = 0
    var number: UInt64 = 0
  }

  private struct Directory {
    var name: Name
    var identity: Identity
    var parent: Watch?
    var children: [Name: Watch] = [:]
    var isUnscanned = true
    /// Names under which a directory has appeared that could not be inspected, because this one had already been moved.
    var unresolved: Set<Name> = []
    /// Whether something has changed in or below this directory while it had no path.
    var hasMissed = false
    /// The name that something was moved to, unless another name in the directory has changed since.
    var arrived: Name?
    /// Names that were reported as moved away, although another entry may have replaced each at the same time.
    var doubtful: Set<Name> = []
    /// Names that a scan has reported, and whose records may still follow.
    var reported: Set<Name> = []
  }

  /// The maximum number of reported names to remember, beyond which a name may be reported twice.
  static let reportedLimit = 65_536

  private var directories: [Watch: Directory] = [:]
  private var reportedCount = 0
  private var reporting: [Watch] = []
  let root: Watch

  init(root: Watch, _ identity: Identity = Identity()) {
    self.root = root
    directories[root] = Directory(name: [], identity: identity)
  }

  var watches: [Watch] { Array(directories.keys) }

  var count: Int { directories.count }

  func contains(_ watch: Watch) -> Bool { directories[watch] != nil }

  /// Returns the names from the root to a directory, or `nil` if it is not below the root now.
  ///
  /// - Complexity: O(*d*), where *d* is the depth of the directory.
  func names(to watch: Watch) -> [Name]? {
    var names: [Name] = []
    var current = watch
    while current != root {
      guard let directory = directories[current], let parent = directory.parent else { return nil }
      names.append(directory.name)
      current = parent
    }
    return names.reversed()
  }

  func child(_ name: Name, of parent: Watch) -> Watch? { directories[parent]?.children[name] }

  /// Returns the name of a directory and its parent, or `nil` if it is the root or has no parent now.
  func position(of watch: Watch) -> (name: Name, parent: Watch)? {
    directories[watch].flatMap { directory in directory.parent.map { (directory.name, $0) } }
  }

  func identity(of watch: Watch) -> Identity? { directories[watch]?.identity }

  /// Places a directory under a parent, wherever it was before.
  ///
  /// Returns false if it would be below itself, or if the parent is unknown. A new directory gets the given identity
  /// and is unscanned.
  mutating func place(
    _ watch: Watch, _ name: Name, under parent: Watch, _ identity: Identity = Identity()
  ) -> Bool {
    guard watch != root, directories[parent] != nil, !isBelow(parent, watch) else { return false }
    detach(watch)
    if let other = directories[parent]?.children[name] { detach(other) }
    directories[watch, default: Directory(name: name, identity: identity)].name = name
    directories[watch]?.parent = parent
    directories[parent]?.children[name] = watch
    return true
  }

  /// Removes a directory from its parent, with all its descendants.
  mutating func detach(_ watch: Watch) {
    guard let directory = directories[watch], let parent = directory.parent else { return }
    if directories[parent]?.children[directory.name] == watch { directories[parent]?.children[directory.name] = nil }
    directories[watch]?.parent = nil
  }

  /// Forgets a directory and all its descendants, and returns their watches.
  mutating func remove(_ watch: Watch) -> [Watch] {
    guard directories[watch] != nil else { return [] }
    detach(watch)
    var removed = [watch]
    var next = 0
    while next < removed.count {
      if let directory = directories.removeValue(forKey: removed[next]) {
        removed += directory.children.values
        reportedCount -= directory.reported.count
      }
      next += 1
    }
    return removed
  }

  /// Returns whether a directory is `ancestor` or one of its descendants.
  func isBelow(_ watch: Watch, _ ancestor: Watch) -> Bool {
    var current: Watch? = watch
    while let there = current {
      if there == ancestor { return true }
      current = directories[there]?.parent
    }
    return false
  }
}

extension WatchTree {
  mutating func noteReported(_ name: Name, in watch: Watch) {
    // Insert in place, because otherwise the set would be copied for each name.
    guard reportedCount < Self.reportedLimit,
      directories[watch]?.reported.insert(name).inserted == true
    else { return }
    reportedCount += 1
    if directories[watch]?.reported.count == 1 { reporting.append(watch) }
  }

  /// Returns whether a scan has reported a name, and forgets it.
  mutating func takeReported(_ name: Name, in watch: Watch) -> Bool {
    guard directories[watch]?.reported.remove(name) != nil else { return false }
    reportedCount -= 1
    return true
  }

  /// Forgets the reported names, whose records have been read.
  mutating func forgetReported() {
    for watch in reporting { directories[watch]?.reported = [] }
    reporting = []
    reportedCount = 0
  }
}

// MARK: - Pending inspections
extension WatchTree {
  func isUnscanned(_ watch: Watch) -> Bool { directories[watch]?.isUnscanned ?? false }

  mutating func noteScanned(_ watch: Watch) { directories[watch]?.isUnscanned = false }

  /// Records that a directory has appeared under a name and could not be inspected.
  mutating func postpone(_ name: Name, in watch: Watch) { directories[watch]?.unresolved.insert(name) }

  /// Records that a name no longer exists or has been inspected.
  mutating func settle(_ name: Name, in watch: Watch) { directories[watch]?.unresolved.remove(name) }

  func unresolved(in watch: Watch) -> Set<Name> { directories[watch]?.unresolved ?? [] }

  /// Records a change of a directory's names, and returns whether the name was moved to and away from with nothing in
  /// between, as it is when two names are exchanged.
  mutating func noteChange(of name: Name, in watch: Watch, isArrival: Bool, isDeparture: Bool) -> Bool {
    let isDoubtful = isDeparture && directories[watch]?.arrived == name
    directories[watch]?.arrived = isArrival ? name : nil
    directories[watch]?.doubtful.remove(name)
    if isDoubtful { directories[watch]?.doubtful.insert(name) }
    return isDoubtful
  }

  func doubtful(in watch: Watch) -> Set<Name> { directories[watch]?.doubtful ?? [] }

  mutating func settleDoubts(in watch: Watch) { directories[watch]?.doubtful = [] }

  /// Records that something has changed in a directory that has no path.
  mutating func noteMissed(in watch: Watch) {
    guard var top = directories[watch] == nil ? nil : watch else { return }
    while let parent = directories[top]?.parent { top = parent }
    if top != root { directories[top]?.hasMissed = true }
  }

  /// Returns whether something has changed in a directory or below it while it had no path.
  func hasMissed(_ watch: Watch) -> Bool { directories[watch]?.hasMissed ?? false }
}

#if DEBUG
  extension WatchTree {
    /// Whether parents and children agree, and the count of names is correct.
    var isConsistent: Bool {
      directories.allSatisfy { watch, directory in
        directory.children.allSatisfy {
          directories[$0.value]?.parent == watch && directories[$0.value]?.name == $0.key
        }
          && (directory.parent.map { directories[$0]?.children[directory.name] == watch } ?? true)
      } && reportedCount == directories.values.reduce(0) { $0 + $1.reported.count }
    }
  }
#endif
