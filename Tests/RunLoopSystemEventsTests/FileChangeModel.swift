// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopSystemEvents
import TestSupport

/// The entries of a tree as they are reported, to be compared with those that are there.
struct Mirror {
  /// Each path below the root, and whether it is a directory.
  private(set) var entries: [String: Bool] = [:]
  private var moving: [UInt32: [String: Bool]] = [:]
  private let root: String

  init(_ root: String) { self.root = root }

  /// Enters a path that is there before anything is reported.
  mutating func put(_ path: String, isDirectory: Bool = true) { entries[path] = isDirectory }

  mutating func apply(_ change: FileChange) {
    let path = String(change.path.string.dropFirst(root.count + 1))
    switch change.kind {
    case .created: put(["": change.isDirectory], at: path, replaces: false)
    case .removed: _ = take(path)
    case .movedFrom: moving[change.cookie] = take(path)
    case .movedTo:
      if let moved = moving.removeValue(forKey: change.cookie), moved[""] == change.isDirectory {
        put(moved, at: path, replaces: true)
      } else {
        put(["": change.isDirectory], at: path, replaces: false)
      }
    case .modified, .written, .attributes, .overflow, .rootGone, .replaced, .unwatched, .failed: break
    }
  }

  /// Takes an entry and all below it away, by what follows its path.
  private mutating func take(_ path: String) -> [String: Bool] {
    var taken: [String: Bool] = [:]
    for (name, isDirectory) in entries where name == path || name.hasPrefix(path + "/") {
      taken[String(name.dropFirst(path.count))] = isDirectory
      entries[name] = nil
    }
    return taken
  }

  private mutating func put(_ moved: [String: Bool], at path: String, replaces: Bool) {
    if replaces || moved[""] == false { _ = take(path) }
    for (rest, isDirectory) in moved { entries[path + rest] = isDirectory }
  }
}

/// What is in a directory, by its path below it.
func listing(_ root: String) -> [String: Bool] {
  var found: [String: Bool] = [:]
  var next = [""]
  while let directory = next.popLast() {
    for (name, isDirectory) in entries(of: "\(root)/\(directory)") {
      let path = directory.isEmpty ? name : "\(directory)/\(name)"
      found[path] = isDirectory
      if isDirectory { next.append(path) }
    }
  }
  return found
}

private typealias RenameWithFlags =
  @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

/// Exchanges two names in one step; false if one of them does not exist.
@discardableResult
func exchange(_ one: String, _ other: String) -> Bool {
  // The C library declares the call, and RENAME_EXCHANGE, for its extensions alone.
  let call = unsafeBitCast(dlsym(nil, "renameat2"), to: RenameWithFlags.self)
  return call(AT_FDCWD, one, AT_FDCWD, other, 1 << 1) == 0
}

/// Random operations on a tree, each of which may fail as it may for any program.
struct TreeStorm {
  private let root: String
  /// A directory that nobody watches, of the same file system.
  private let outside: String
  private var random: SplitMix64
  private var count = 0

  init(_ root: String, outside: String, seed: UInt64) {
    (self.root, self.outside) = (root, outside)
    random = SplitMix64(seed: seed)
  }

  private mutating func name() -> String { ["a", "b", "c", "d"][random.below(4)] }

  /// A directory at some depth.
  private mutating func directory() -> String {
    var path = root
    while !random.oneIn(3) {
      let below = entries(of: path).filter(\.isDirectory)
      guard !below.isEmpty else { break }
      path += "/\(below[random.below(below.count)].name)"
    }
    return path
  }

  /// An entry at some depth.
  private mutating func entry() -> String {
    let parent = directory()
    let all = entries(of: parent)
    return all.isEmpty ? "\(parent)/\(name())" : "\(parent)/\(all[random.below(all.count)].name)"
  }

  private func make(_ path: String) { close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)) }

  /// A directory with entries that is filled under one name and then has another, as programs do that copy trees.
  private mutating func fill() {
    count += 1
    let temporary = "\(directory())/tmp\(count)"
    mkdir(temporary, 0o700)
    for name in ["x", "y"] { make("\(temporary)/\(name)") }
    mkdir("\(temporary)/d", 0o700)
    make("\(temporary)/d/z")
    rename(temporary, "\(directory())/\(name())")
  }

  mutating func step() {
    switch random.below(16) {
    case 0, 1: mkdir("\(directory())/\(name())", 0o700)
    case 2, 3: make("\(directory())/\(name())")
    case 4, 5, 6: rename(entry(), "\(directory())/\(name())")
    case 7:
      count += 1
      rename(entry(), "\(outside)/\(count)")
    case 8:
      let there = entries(of: outside)
      if !there.isEmpty { rename("\(outside)/\(there[random.below(there.count)].name)", "\(directory())/\(name())") }
    case 9: remove(entry())
    case 10: removeAll(entry())
    case 11:
      var path = directory()
      for _ in 0..<8 {
        path += "/\(name())"
        mkdir(path, 0o700)
      }
    case 12, 13: exchange(entry(), random.oneIn(3) ? "\(outside)/\(random.below(max(count, 1)))" : entry())
    // To a name beside it, so that no link leads out of the tree.
    case 14: symlink(name(), "\(directory())/\(name())")
    default: fill()
    }
  }

  private func removeAll(_ path: String) {
    // What a link leads to is not removed with it.
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      unlink(path)
      return
    }
    for (name, isDirectory) in listing(path).sorted(by: { $0.key > $1.key }) {
      if isDirectory { rmdir("\(path)/\(name)") } else { unlink("\(path)/\(name)") }
    }
    remove(path)
  }
}
