/// The watched directories by their watches: a value without effects.
///
/// A directory knows its name and its parent, so that moving one with all that is below it is one step, and a path is put
/// together when it is needed. A directory that has been moved away, and may come back elsewhere, has no parent and no path.
struct WatchTree {
  typealias Watch = Int32
  typealias Name = [UInt8]

  private struct Directory {
    var name: Name
    var parent: Watch?
    var children: [Name: Watch] = [:]
    /// What a scan has told of, whose own event may still come.
    var told: Set<Name> = []
  }

  /// How many names are remembered because a scan has told of them; beyond that, one may be told twice.
  static let toldLimit = 65_536

  private var directories: [Watch: Directory] = [:]
  private var toldCount = 0
  /// The directories that have told names.
  private var telling: [Watch] = []
  let root: Watch

  init(root: Watch) {
    self.root = root
    directories[root] = Directory(name: [], parent: nil)
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

  /// Puts a directory under its parent, wherever it was before; false if it would be below itself, or the parent is unknown.
  mutating func place(_ watch: Watch, _ name: Name, under parent: Watch) -> Bool {
    guard watch != root, directories[parent] != nil, !isBelow(parent, watch) else { return false }
    detach(watch)
    if let other = directories[parent]?.children[name] { detach(other) }
    directories[watch, default: Directory(name: name)].name = name
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

  /// Forgets a directory and all below it, and gives their watches.
  mutating func remove(_ watch: Watch) -> [Watch] {
    guard directories[watch] != nil else { return [] }
    detach(watch)
    var removed = [watch]
    var next = 0
    while next < removed.count {
      if let directory = directories.removeValue(forKey: removed[next]) {
        removed += directory.children.values
        toldCount -= directory.told.count
      }
      next += 1
    }
    return removed
  }

  private func isBelow(_ watch: Watch, _ ancestor: Watch) -> Bool {
    var current: Watch? = watch
    while let there = current {
      if there == ancestor { return true }
      current = directories[there]?.parent
    }
    return false
  }
}

extension WatchTree {
  /// Notes that a scan has told of a name.
  mutating func tell(_ name: Name, in watch: Watch) {
    // Changed in place: a copy of the names would be made for each of them.
    guard toldCount < Self.toldLimit, directories[watch]?.told.insert(name).inserted == true else { return }
    toldCount += 1
    if directories[watch]?.told.count == 1 { telling.append(watch) }
  }

  /// Whether a scan has told of a name, which then is not remembered any more.
  mutating func takeTold(_ name: Name, in watch: Watch) -> Bool {
    guard directories[watch]?.told.remove(name) != nil else { return false }
    toldCount -= 1
    return true
  }

  /// Forgets what scans have told: their events have come.
  mutating func forgetTold() {
    for watch in telling { directories[watch]?.told = [] }
    telling = []
    toldCount = 0
  }
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
      } && toldCount == directories.values.reduce(0) { $0 + $1.told.count }
    }
  }
#endif
