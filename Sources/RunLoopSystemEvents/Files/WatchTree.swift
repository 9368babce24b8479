// SPDX-License-Identifier: Apache-2.0

/// The watched directories by their watches: a value without effects.
///
/// A directory knows its name and its parent, so that moving one with all that is below it is one step, and a path is
/// put together when it is needed. A directory that has been moved away, and may come back elsewhere, has no parent and
/// no path.
struct WatchTree {
  typealias Watch = Int32
  typealias Name = [UInt8]

  /// What distinguishes a directory from every other that exists at the same time.
  struct Identity: Hashable {
    var device: UInt64 = 0
    var number: UInt64 = 0
  }

  private struct Directory {
    var name: Name
    var identity: Identity
    var parent: Watch?
    var children: [Name: Watch] = [:]
    /// Its entries have not been looked at.
    var isUnscanned = true
    /// Names under which a directory has appeared that could not be looked at, as this one was elsewhere by then.
    var unresolved: Set<Name> = []
    /// Something happened in or below it while it had no path.
    var hasMissed = false
    /// The name that something was moved to, if nothing else has happened to the directory's names since.
    var arrived: Name?
    /// Names that were reported as moved away, though another entry may have taken each at the same moment.
    var doubtful: Set<Name> = []
    /// What a scan has reported, whose own record may still come.
    var reported: Set<Name> = []
  }

  /// How many names are remembered because a scan has reported them; beyond that, one may be reported twice.
  static let reportedLimit = 65_536

  private var directories: [Watch: Directory] = [:]
  private var reportedCount = 0
  /// The directories that have reported names.
  private var reporting: [Watch] = []
  let root: Watch

  init(root: Watch, _ identity: Identity = Identity()) {
    self.root = root
    directories[root] = Directory(name: [], identity: identity)
  }

  var watches: [Watch] { Array(directories.keys) }

  var count: Int { directories.count }

  func contains(_ watch: Watch) -> Bool { directories[watch] != nil }

  /// The names from the root to a directory, each after a slash; nil if it is not below the root now.
  ///
  /// O(depth).
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

  /// The name of a directory and its parent; nil if it is the root or has no parent now.
  func position(of watch: Watch) -> (name: Name, parent: Watch)? {
    directories[watch].flatMap { directory in directory.parent.map { (directory.name, $0) } }
  }

  func identity(of watch: Watch) -> Identity? { directories[watch]?.identity }

  /// Puts a directory under its parent, wherever it was before; false if it would be below itself, or the parent is
  /// unknown.
  ///
  /// One that is new has not been scanned. The identity is of one that is new.
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

  /// Takes a directory away from its parent; what is below it stays with it.
  mutating func detach(_ watch: Watch) {
    guard let directory = directories[watch], let parent = directory.parent else { return }
    if directories[parent]?.children[directory.name] == watch { directories[parent]?.children[directory.name] = nil }
    directories[watch]?.parent = nil
  }

  /// Forgets a directory and all below it, and returns their watches.
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

  /// Whether a directory is another or below it.
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
  /// Notes that a scan has reported a name.
  mutating func noteReported(_ name: Name, in watch: Watch) {
    // Changed in place: a copy of the names would be made for each of them.
    guard reportedCount < Self.reportedLimit,
      directories[watch]?.reported.insert(name).inserted == true
    else { return }
    reportedCount += 1
    if directories[watch]?.reported.count == 1 { reporting.append(watch) }
  }

  /// Whether a scan has reported a name, which then is not remembered any more.
  mutating func takeReported(_ name: Name, in watch: Watch) -> Bool {
    guard directories[watch]?.reported.remove(name) != nil else { return false }
    reportedCount -= 1
    return true
  }

  /// Forgets what scans have reported: their records have been read.
  mutating func forgetReported() {
    for watch in reporting { directories[watch]?.reported = [] }
    reporting = []
    reportedCount = 0
  }
}

// What is still to be looked at.
extension WatchTree {
  func isUnscanned(_ watch: Watch) -> Bool { directories[watch]?.isUnscanned ?? false }

  mutating func noteScanned(_ watch: Watch) { directories[watch]?.isUnscanned = false }

  /// Notes that a directory has appeared under a name and has not been looked at.
  mutating func postpone(_ name: Name, in watch: Watch) { directories[watch]?.unresolved.insert(name) }

  /// A name is gone, or is looked at.
  mutating func settle(_ name: Name, in watch: Watch) { directories[watch]?.unresolved.remove(name) }

  func unresolved(in watch: Watch) -> Set<Name> { directories[watch]?.unresolved ?? [] }

  /// Notes a change of a directory's names, and returns whether the name was both moved to and moved away from with
  /// nothing in between, as it is when two names are exchanged.
  mutating func noteChange(of name: Name, in watch: Watch, isArrival: Bool, isDeparture: Bool) -> Bool {
    let isDoubtful = isDeparture && directories[watch]?.arrived == name
    directories[watch]?.arrived = isArrival ? name : nil
    directories[watch]?.doubtful.remove(name)
    if isDoubtful { directories[watch]?.doubtful.insert(name) }
    return isDoubtful
  }

  func doubtful(in watch: Watch) -> Set<Name> { directories[watch]?.doubtful ?? [] }

  mutating func settleDoubts(in watch: Watch) { directories[watch]?.doubtful = [] }

  /// Notes that something happened in a directory that has no path.
  mutating func noteMissed(in watch: Watch) {
    guard var top = directories[watch] == nil ? nil : watch else { return }
    while let parent = directories[top]?.parent { top = parent }
    if top != root { directories[top]?.hasMissed = true }
  }

  /// Whether something happened in a directory or below it while it had no path.
  func hasMissed(_ watch: Watch) -> Bool { directories[watch]?.hasMissed ?? false }
}

#if DEBUG
  extension WatchTree {
    /// Whether parents and children agree, and the names are counted right.
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
