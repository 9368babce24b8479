// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

@Suite("File changes compared with a model", .timeLimit(.minutes(20)))
struct FileChangeModelTests {
  /// Returns the differences between the reported and the actual entries.
  private func differences(_ changes: [FileChange], _ root: String) -> [String] {
    var mirror = Mirror(root)
    for change in changes { mirror.apply(change) }
    let there = listing(root)
    let paths = Set(there.keys).union(mirror.entries.keys)
    return paths.filter { there[$0] != mirror.entries[$0] }
      .map { "\(there[$0] == nil ? "not there" : "not reported"): \($0)" }.sorted()
  }

  @Test("after random operations, the reported entries are the actual ones")
  func random() {
    for seed in 0..<10 as Range<UInt64> {
      watching(events: [.created, .removed, .moved]) { watched in
        let outside = Scratch()
        var storm = TreeStorm(watched.scratch.path, outside: outside.path, seed: seed)
        var random = SplitMix64(seed: ~seed)
        // Another source of the same tree shares its watches, and is sometimes served before or after.
        let others = Notes<FileChange>()
        let other = try FileChangeSource(path: watched.source.path, recursive: true, events: watched.source.events) {
          others.add(contentsOf: $1)
        }
        try watched.loop.add(other, forMode: .default)
        for _ in 0..<30 {
          for _ in 0...random.below(12) { storm.step() }
          watched.loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
        }
        _ = watched.told()
        let found = differences(watched.all, watched.scratch.path)
        #expect(found.isEmpty, "seed \(seed): \(found)")
        // The watch of a directory that was moved away is removed once the queue has been empty again.
        _ = watched.told()
        let count = listing(watched.scratch.path).values.count { $0 }
        #expect(watched.source.watchCount == count + 1, "seed \(seed)")
        watched.loop.drain()
        let missed = differences(others.all, watched.scratch.path)
        #expect(missed.isEmpty, "seed \(seed), the other source: \(missed)")
        other.invalidate()
      }
    }
  }

  @Test("a directory whose old name is reused while its parent is moved is reported")
  func takenName() throws {
    let scratch = Scratch()
    var watcher = try FileWatcher(
      .init(scratch.path), recursive: true, events: [.created, .removed, .moved], ownQueue: WatchQueue())
    for name in ["p", "p/d"] { scratch.makeDirectory(name) }
    for record in try watcher.queue.take(for: watcher.inbox).records { watcher.handle(record) }
    // All of this before the result of the scan is processed.
    rename(scratch("p/d"), scratch("p/b"))
    rename(scratch("p"), scratch("q"))
    scratch.makeDirectory("q/d")
    while let next = watcher.toScan.popLast() { watcher.lookAt(next, reports: true) }
    watcher.opened.removeAll()
    var changes = watcher.changes
    watcher.changes = []
    while let step = watcher.step(mayTake: true) { changes += step.changes }
    let found = differences(changes, scratch.path)
    #expect(found.isEmpty, "\(found)")
    #expect(watcher.watchCount == 4)
    watcher.close()
  }

  @Test("the directory that is found where a file system was unmounted is watched")
  func unmounted() throws {
    let scratch = Scratch()
    scratch.makeDirectory("mount")
    scratch.makeDirectory("mount/above")
    var watcher = try FileWatcher(
      .init(scratch.path), recursive: true, events: [.created, .removed, .moved], ownQueue: WatchQueue())
    let mount = try #require(watcher.tree.child(Array("mount".utf8), of: watcher.tree.root))
    let above = try #require(watcher.tree.child(Array("above".utf8), of: mount))
    // Other directories have the names, and the records of that are dropped, as if an unmount had uncovered them.
    rename(scratch("mount"), scratch.path + "-mount")
    for name in ["mount", "mount/below"] { scratch.makeDirectory(name) }
    _ = try watcher.queue.take(for: watcher.inbox)
    for watch in [above, mount] {
      for mask in [IN_UNMOUNT, IN_IGNORED] {
        watcher.handle(WatchRecord(watch: watch, mask: UInt32(mask), cookie: 0, name: []))
      }
    }
    var changes = watcher.changes
    watcher.changes = []
    scratch.make("mount/file")
    while let step = watcher.step(mayTake: true) { changes += step.changes }
    let found = scratch.text(changes)
    #expect(found.prefix(2) == ["removed mount/", "created mount/"])
    #expect(found.dropFirst(2).sorted() == ["created mount/below/", "created mount/file"])
    #expect(watcher.watchCount == 3)
    watcher.close()
    for name in ["/above", ""] { rmdir(scratch.path + "-mount" + name) }
  }

  @Test("directories filled under one name and then renamed are not lost")
  func fillAndRename() {
    watching(events: [.created, .removed, .moved]) { watched in
      let path = watched.scratch.path
      let makers = (0..<3).map { maker in
        SourceRig.start {
          let outside = Scratch()
          for round in 0..<120 {
            let temporary = "\(path)/tmp-\(maker)-\(round)"
            mkdir(temporary, 0o700)
            for name in ["a", "a/b", "c"] { mkdir("\(temporary)/\(name)", 0o700) }
            for name in ["1", "a/2", "a/b/3", "c/4"] {
              close(open("\(temporary)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
            }
            rename("\(temporary)/c", "\(temporary)/a/c")
            rename(temporary, "\(path)/done-\(maker)-\(round)")
            guard round % 3 == 0 else { continue }
            rename("\(path)/done-\(maker)-\(round)", outside("away"))
            rename(outside("away"), "\(path)/back-\(maker)-\(round)")
          }
        }
      }
      let waiter = SourceRig.start {
        for maker in makers { maker.join() }
        watched.scratch.make("done")
      }
      let done = FileChangeSource.Path(watched.scratch("done"))
      watched.loop.run { watched.all.contains { $0.path == done } }
      waiter.join()
      _ = watched.told()
      let found = differences(watched.all, path)
      #expect(found.isEmpty, "\(found.count) of \(listing(path).count) differ, such as \(found.prefix(10))")
    }
  }

  @Test("another process's changes to a watched tree are reported")
  func process() {
    watching(events: [.created, .removed, .moved]) { watched in
      let script = """
        cd "$0"; for round in $(seq 60); do
          mkdir -p tmp/a/b/c tmp/d; : > tmp/a/b/c/1; : > tmp/d/2; mv tmp/d tmp/a/d; mv tmp "in$round"
          case $((round % 5)) in 0) rm -r "in$round";; 2) mv "in$round" "in$((round - 1))";; esac
        done; : > done
        """
      let child = spawn("/bin/sh", "-c", script, watched.scratch.path)
      let done = FileChangeSource.Path(watched.scratch("done"))
      watched.loop.run { watched.all.contains { $0.path == done } }
      #expect(reap(child) == 0)
      _ = watched.told()
      let found = differences(watched.all, watched.scratch.path)
      #expect(found.isEmpty, "\(found)")
    }
  }
}

@Suite("Lost file changes", .timeLimit(.minutes(20)))
struct FileChangeOverflowTests {
  /// Creates a file in every directory, each of which must be reported.
  private func probe(_ watched: WatchedScratch) {
    let root = watched.scratch.path
    // A file created while the queue is nearly full would be lost too.
    watched.loop.drain()
    _ = watched.told()
    let directories = [""] + listing(root).filter(\.value).map(\.key).sorted()
    for directory in directories {
      watched.scratch.make("\(directory.isEmpty ? "" : directory + "/")probe")
      watched.loop.drain()
    }
    let told = Set(watched.told())
    let missing = directories.filter { !told.contains("created \($0.isEmpty ? "" : $0 + "/")probe") }
    #expect(missing.isEmpty, "\(missing.count) of \(directories.count) are not watched, such as \(missing.prefix(5))")
    #expect(watched.source.watchCount == directories.count)
  }

  @Test("after overflows amid random operations every directory is watched")
  func random() {
    for seed in 100..<105 as Range<UInt64> {
      watching(events: [.created, .removed, .moved], limit: 20) { watched in
        let outside = Scratch()
        var storm = TreeStorm(watched.scratch.path, outside: outside.path, seed: seed)
        var random = SplitMix64(seed: ~seed)
        for _ in 0..<20 {
          for _ in 0...random.below(25) { storm.step() }
          watched.loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
        }
        #expect(watched.all.contains { $0.kind == .overflow })
        probe(watched)
      }
    }
  }

  @Test("a queue that overflows while directories are renamed does not end the source")
  func queue() {
    watching(events: [.created, .removed, .moved, .attributes], hasOwnQueue: true) { watched in
      let root = watched.scratch.path
      let outside = Scratch()
      var storm = TreeStorm(root, outside: outside.path, seed: 7)
      for _ in 0..<100 { storm.step() }
      for name in ["1", "2"] { watched.scratch.make(name) }
      // The kernel merges equal consecutive events, so the operation alternates between two.
      for round in 0..<40_000 { chmod(watched.scratch(round % 2 == 0 ? "1" : "2"), 0o600) }
      let maker = SourceRig.start { [storm] in
        var storm = storm
        for _ in 0..<300 { storm.step() }
      }
      watched.loop.run { watched.all.contains { $0.kind == .overflow } }
      maker.join()
      probe(watched)
    }
  }
}
