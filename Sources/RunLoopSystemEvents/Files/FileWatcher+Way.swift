// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

// MARK: - The watched path
//
// The source watches a path, so it also watches what leads there: the name in its directory, each link on the path,
// and each directory in between.

extension FileWatcher {
  enum Destination {
    case file(OwnedDescriptor, WatchTree.Identity)
    case nothing
    case failed(SystemError)

    var identity: WatchTree.Identity? {
      if case .file(_, let identity) = self { identity } else { nil }
    }

    var failure: SystemError? {
      if case .failed(let error) = self { error } else { nil }
    }
  }

  /// The maximum number of links on a path, as in the kernel.
  private static let mostLinks = 40
  /// The maximum number of lookups of a path that keeps changing; a later record reports the next change.
  private static let mostLookups = 4

  /// Watches the directories on the path, and returns the file that the path leads to.
  ///
  /// The last lookup finds any change before it, and a watch reports any later one.
  mutating func findPath() -> Destination {
    var found = Destination.nothing
    for _ in 0..<Self.mostLookups {
      let walked = walk()
      do throws(SystemError) {
        let file = try OpenFile.root(place, isDirectory: isRecursive)
        found = .file(file, try OpenFile.identity(file))
      } catch {
        found = OpenFile.isGone(error) ? .nothing : .failed(error)
      }
      if found.identity == walked { break }
    }
    return found
  }

  /// Watches the path step by step, and returns the identity of the file at its end.
  private mutating func walk() -> WatchTree.Identity? {
    wayFailure = nil
    var way: [Int32: Set<[UInt8]>] = [:]
    // If the walk fails, for example for lack of descriptors, the previous watches are kept too.
    var isWhole = true
    defer { if isWhole { queue.setWay(way, inbox) } }
    do throws(SystemError) {
      let top = try OpenFile.root("/", isDirectory: true)
      var (here, links) = (top, 0)
      var left = Array(place.names.reversed())
      while let name = left.popLast() {
        var found = try Step(name, in: here)
        if left.isEmpty || !found.isDirectory {
          // Watch the directory, because the name may change, and look the name up again to find earlier changes.
          note(here, name, &way)
          found = try Step(name, in: here)
        }
        switch found {
        case .directory(let directory):
          if !left.isEmpty { note(directory, nil, &way) }
          here = directory
        case .link(let target):
          links += 1
          guard links <= Self.mostLinks else { return nil }
          if target.bytes.first == UInt8(ascii: "/") { here = top }
          left += target.names.reversed()
        case .other(let file): return left.isEmpty && !isRecursive ? try OpenFile.identity(file) : nil
        case .nothing: return nil
        }
      }
      return try OpenFile.identity(here)
    } catch {
      // A removed file is not a failure, because a record reports it.
      if !OpenFile.isGone(error) { (isWhole, wayFailure) = (false, error) }
      return nil
    }
  }

  /// The target of a name on the path.
  private enum Step {
    case directory(OwnedDescriptor)
    case link(FileChangeSource.Path)
    case other(OwnedDescriptor)
    case nothing

    init(_ name: [UInt8], in directory: OwnedDescriptor) throws(SystemError) {
      do throws(SystemError) {
        let file = try OpenFile.entry(name, in: directory)
        switch try OpenFile.type(file) {
        case UInt32(S_IFDIR): self = .directory(file)
        case UInt32(S_IFLNK): self = .link(.init(bytes: try OpenFile.target(file)))
        default: self = .other(file)
        }
      } catch {
        guard error.number == EACCES || OpenFile.isGone(error) else { throw error }
        self = .nothing
      }
    }

    var isDirectory: Bool {
      if case .directory = self { true } else { false }
    }
  }

  private mutating func note(_ directory: OwnedDescriptor, _ name: [UInt8]?, _ way: inout [Int32: Set<[UInt8]>]) {
    do throws(SystemError) {
      let watch = try queue.addWay(directory, inbox, name: name)
      way[watch, default: []].formUnion(name.map { [$0] } ?? [])
    } catch {
      // Many accessible paths lead through a directory that this process may not read.
      if error.number != EACCES, !OpenFile.isGone(error) { wayFailure = error }
    }
  }
}
