// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

@Suite("Following a path", .timeLimit(.minutes(20)))
struct FileChangeFollowingTests {
  @Test("each save by a rename is a replacement, and the new file is watched, even while the old one is open")
  func atomicSaves() {
    watchingPath("f", isFollowing: true, prepare: { $0.make("f") }) { watched in
      let file = open(watched.scratch("f"), O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      for _ in 0..<3 {
        watched.scratch.replace("f")
        #expect(watched.told() == ["replaced f"])
        watched.scratch.make("f", text: "more")
        #expect(watched.toldWritten() == ["modified f", "written f"])
      }
      #expect(watched.source.isValid && watched.source.watchCount == 1)
    }
  }

  @Test("a path that does not exist yet is followed through all directories that must be created")
  func notThere() {
    watchingPath("a/b/f", isFollowing: true) { watched in
      let scratch = watched.scratch
      #expect(watched.source.watchCount == 0)
      for name in ["a", "a/b"] {
        scratch.makeDirectory(name)
        #expect(watched.told() == [])
      }
      scratch.make("a/b/f", text: "x")
      #expect(watched.toldWritten() == ["created a/b/f", "written a/b/f"])
      unlink(scratch("a/b/f"))
      #expect(watched.told() == ["removed a/b/f"])
      for name in ["a/b", "a"] { rmdir(scratch(name)) }
      #expect(watched.told() == [])
      for name in ["a", "a/b"] { scratch.makeDirectory(name) }
      scratch.make("a/b/f")
      #expect(watched.told().first == "created a/b/f")
    }
  }

  @Test("a tree that is removed and recreated is followed, with its new contents")
  func tree() {
    watchingPath(
      "d", isFollowing: true, recursive: true, prepare: { for name in ["d", "d/e"] { $0.makeDirectory(name) } }
    ) { watched in
      let scratch = watched.scratch
      for name in ["d/e", "d"] { rmdir(scratch(name)) }
      for name in ["d", "d/n"] { scratch.makeDirectory(name) }
      scratch.make("d/n/f")
      #expect(watched.told() == ["replaced d/", "created d/n/", "created d/n/f"])
      scratch.make("d/n/g")
      #expect(watched.told() == ["created d/n/g"])
      scratch.move("d", "z")
      #expect(watched.told() == ["removed d/"])
      scratch.move("z", "d")
      #expect(watched.told().sorted() == ["created d/", "created d/n/", "created d/n/f", "created d/n/g"])
      #expect(watched.source.watchCount == 2)
    }
  }

  @Test("an exchange of the path is a replacement, in a tree and in a directory", arguments: [false, true])
  func exchanged(isRecursive: Bool) {
    watchingPath(
      "d", isFollowing: true, recursive: isRecursive,
      prepare: { scratch in
        for name in ["d", "next"] { scratch.makeDirectory(name) }
        scratch.make("next/f")
      }
    ) { watched in
      #expect(exchange(watched.scratch("d"), watched.scratch("next")))
      #expect(watched.told() == ["replaced d/", "created d/f"])
      watched.scratch.make("d/g")
      #expect(watched.told() == ["created d/g"])
    }
  }

  @Test("links are swapped as Kubernetes swaps those of a configuration")
  func swappedLinks() {
    watchingPath(
      "config/key", isFollowing: true,
      prepare: { scratch in
        for name in ["config", "config/..1", "config/..2"] { scratch.makeDirectory(name) }
        for name in ["config/..1/key", "config/..2/key"] { scratch.make(name) }
        scratch.link("config/..data", to: "..1")
        scratch.link("config/key", to: "..data/key")
      }
    ) { watched in
      let scratch = watched.scratch
      scratch.link("config/..data_tmp", to: "..2")
      scratch.move("config/..data_tmp", "config/..data")
      #expect(watched.told() == ["replaced config/key"])
      unlink(scratch("config/..1/key"))
      rmdir(scratch("config/..1"))
      #expect(watched.told() == [])
      scratch.make("config/..2/key", text: "x")
      #expect(watched.toldWritten() == ["modified config/key", "written config/key"])
    }
  }

  @Test("an overflow that swallows a replacement is followed by it")
  func overflow() {
    watchingPath("d", isFollowing: true, recursive: true, limit: 10, prepare: { $0.makeDirectory("d") }) { watched in
      let scratch = watched.scratch
      for number in 0..<20 { scratch.make("d/\(number)") }
      scratch.move("d", "old")
      scratch.makeDirectory("d")
      _ = watched.told()
      scratch.make("d/f")
      #expect(watched.told() == ["created d/f"])
    }
  }

  @Test("after random operations on its parents, the target of a followed path is watched")
  func random() {
    for seed in 0..<20 as Range<UInt64> {
      watchingPath(
        "link/d", isFollowing: true, recursive: true, limit: seed % 4 == 0 ? 20 : WatchInbox.defaultLimit,
        prepare: { scratch in
          for name in ["1", "1/d", "2"] { scratch.makeDirectory(name) }
          scratch.link("link", to: "1")
        }
      ) { watched in
        let scratch = watched.scratch
        var storm = PathStorm(scratch, seed: seed)
        var random = SplitMix64(seed: ~seed)
        for _ in 0..<60 {
          for _ in 0...random.below(6) { storm.step() }
          watched.loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
        }
        watched.loop.drain()
        let isThere = access(scratch("link/d/."), F_OK) == 0
        let count = isThere ? listing(scratch("link/d")).values.count { $0 } + 1 : 0
        #expect(watched.source.watchCount == count, "seed \(seed)")
        _ = watched.told()
        guard isThere else { return }
        scratch.make("link/d/probe")
        #expect(watched.told() == ["created link/d/probe"], "seed \(seed)")
      }
    }
  }
}

/// Random operations on the parents of `link/d`, where `link` leads to one of two directories.
private struct PathStorm {
  private let scratch: Scratch
  private var random: SplitMix64

  init(_ scratch: Scratch, seed: UInt64) {
    self.scratch = scratch
    random = SplitMix64(seed: seed)
  }

  mutating func step() {
    let (one, other) = ("\(random.below(2) + 1)", "\(random.below(2) + 1)")
    switch random.below(9) {
    case 0, 1:
      symlink(one, scratch("new"))
      rename(scratch("new"), scratch("link"))
    case 2: mkdir(scratch("\(one)/d"), 0o700)
    case 3: _ = reap(spawn("/bin/rm", "-rf", scratch("\(one)/d")))
    case 4: rename(scratch("\(one)/\(random.oneIn(2) ? "d" : "e")"), scratch("\(other)/\(random.oneIn(2) ? "d" : "e")"))
    case 5: exchange(scratch("\(one)/d"), scratch("\(other)/e"))
    case 6: if random.oneIn(2) { exchange(scratch("1"), scratch("2")) } else { unlink(scratch("link")) }
    case 7: mkdir(scratch("\(one)/d/s"), 0o700)
    default: close(open(scratch("\(one)/d/\(random.below(3))"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
    }
  }
}

@Suite("How other programs write files", .timeLimit(.minutes(20)))
struct FileChangePeerTests {
  // The first two tests make the system calls that `strace` shows for these programs.

  @Test("Vim's ways to save are detected, whenever the loop reads the queue", arguments: [false, true])
  func vim(looksBetween: Bool) {
    watchingPath("f", isFollowing: true, prepare: { $0.make("f", text: "old") }) { watched in
      let scratch = watched.scratch
      var told: [String] = []
      func look() { if looksBetween { told += watched.told() } }
      // backupcopy=no: Vim creates a file to test whether the directory is writable, then renames the old file to the
      // backup.
      scratch.make("4913")
      look()
      unlink(scratch("4913"))
      scratch.move("f", "f~")
      look()
      var file = open(scratch("f"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
      look()
      _ = write(file, "new", 3)
      fsync(file)
      look()
      close(file)
      unlink(scratch("f~"))
      told += watched.toldWritten()
      let all = ["removed f", "created f", "modified f", "written f"]
      #expect(told == (looksBetween ? all : ["replaced f", "written f"]))
      // backupcopy=yes: the backup is a copy, and the file is overwritten in place.
      scratch.make("f~", text: "new")
      file = open(scratch("f"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
      _ = write(file, "newer", 5)
      fsync(file)
      close(file)
      unlink(scratch("f~"))
      #expect(watched.toldWritten() == ["modified f", "written f"])
    }
  }

  @Test("Visual Studio Code's ways to save are detected")
  func visualStudioCode() {
    watchingPath("f", isFollowing: true, prepare: { $0.make("f", text: "old") }) { watched in
      let scratch = watched.scratch
      var file = open(scratch("f"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
      _ = write(file, "new", 3)
      fdatasync(file)
      close(file)
      #expect(watched.toldWritten() == ["modified f", "written f"])
      // Its settings are written to a temporary file that replaces the original.
      file = open(scratch("f.vsctmp"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
      _ = write(file, "newer", 5)
      fdatasync(file)
      close(file)
      scratch.move("f.vsctmp", "f")
      #expect(watched.told() == ["replaced f"])
    }
  }

  @Test("a git checkout in a watched tree is reported as it is", .enabled(if: access("/usr/bin/git", X_OK) == 0))
  func checkout() {
    watchingPath(
      "r", isFollowing: true, recursive: true,
      prepare: { scratch in
        scratch.makeDirectory("r")
        let script = """
          cd "$0" && git init -q . && git checkout -q -b one && mkdir -p a/b c
          for n in 1 2 3; do echo $n > a/b/$n; echo $n > c/$n; done; echo 1 > kind
          save() { git add -A && git -c user.name=n -c user.email=e commit -qm 1; }
          save && git checkout -q -b two && git mv a d && rm -r kind c/1 && mkdir kind && echo 2 > kind/f
          ln -s d link && save && git checkout -q one
          """
        precondition(reap(spawn("/bin/sh", "-c", script, scratch("r"))) == 0)
      }
    ) { watched in
      let (scratch, changes) = (watched.scratch, Notes<FileChange>())
      var mirror = Mirror(scratch("r"))
      for (path, isDirectory) in listing(scratch("r")) { mirror.put(path, isDirectory: isDirectory) }
      let other = try FileChangeSource(path: .init(scratch("r")), recursive: true) { changes.add(contentsOf: $1) }
      try watched.loop.add(other, forMode: .default)
      var seen = 0
      for branch in ["two", "one"] {
        let script = "cd \"$0\" && git checkout -q \(branch); : > .done\(branch)"
        let child = spawn("/bin/sh", "-c", script, scratch("r"))
        watched.loop.run { changes.all.contains { $0.path.string.hasSuffix("/.done\(branch)") } }
        #expect(reap(child) == 0)
        unlink(scratch("r/.done\(branch)"))
        watched.loop.drain()
        for change in changes.all[seen...] { mirror.apply(change) }
        seen = changes.count
        let there = listing(scratch("r"))
        #expect(mirror.entries == there && there["kind"] == (branch == "two"), "\(branch)")
        #expect(watched.source.watchCount == there.values.count { $0 } + 1)
      }
      other.invalidate()
    }
  }
}
