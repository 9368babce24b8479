// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopSystemEvents
import TestSupport

/// The entries of a tree according to the reported changes, for comparison with the actual entries.
struct Mirror {
  /// Each path below the root, and whether it is a directory.
  private(set) var entries: [String: Bool] = [:]
  private var moving: [UInt32: [String: Bool]] = [:]
  private let root: String

  init(_ root: String) { self.root = root }

  /// Adds a path that exists before anything is reported.
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

  /// Removes an entry and everything below it, and returns these by their relative paths.
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

/// Returns the actual entries of a directory by their relative paths.
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

/// Exchanges two names atomically; returns false if one of them does not exist.
@discardableResult
func exchange(_ one: String, _ other: String) -> Bool {
  // The C library declares the call and RENAME_EXCHANGE only as extensions.
  let call = unsafeBitCast(dlsym(nil, "renameat2"), to: RenameWithFlags.self)
  return call(AT_FDCWD, one, AT_FDCWD, other, 1 << 1) == 0
}

/// Random operations on a tree, each of which may fail like any program's.
struct TreeStorm {
  private let root: String
  /// A directory of the same file system that is not watched.
  private let outside: String
  private var random: SplitMix64
  private var count = 0

  init(_ root: String, outside: String, seed: UInt64) {
    (self.root, self.outside) = (root, outside)
    random = SplitMix64(seed: seed)
  }

  private mutating func name() -> String { ["a", "b", "c", "d"][random.below(4)] }

  /// Returns a directory at a random depth.
  private mutating func directory() -> String {
    var path = root
    while !random.oneIn(3) {
      let below = entries(of: path).filter(\.isDirectory)
      guard !below.isEmpty else { break }
      path += "/\(below[random.below(below.count)].name)"
    }
    return path
  }

  /// Returns an entry at a random depth.
  private mutating func entry() -> String {
    let parent = directory()
    let all = entries(of: parent)
    return all.isEmpty ? "\(parent)/\(name())" : "\(parent)/\(all[random.below(all.count)].name)"
  }

  private func make(_ path: String) { close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)) }

  /// Fills a directory under a temporary name and then renames it, as programs do that copy trees.
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
    // The link's target is a sibling, so that no link leads out of the tree.
    case 14: symlink(name(), "\(directory())/\(name())")
    default: fill()
    }
  }

  private func removeAll(_ path: String) {
    // The target of a link is not removed with it.
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
