// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

@Suite("A watched path whose target changes", .timeLimit(.minutes(20)))
struct FileChangePathTests {
  @Test("a file that is replaced or removed while another program has it open is gone", arguments: [false, true])
  func heldOpen(isReplaced: Bool) {
    watchingPath("f", events: .modified, prepare: { $0.make("f") }) { watched in
      let file = open(watched.scratch("f"), O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      if isReplaced { watched.scratch.replace("f") } else { unlink(watched.scratch("f")) }
      #expect(watched.told() == ["rootGone f"] && !watched.source.isValid)
    }
  }

  @Test("a replaced link in the path ends the source, unless it leads to the same target")
  func link() {
    watchingPath(
      "current/d", recursive: true,
      prepare: { scratch in
        for name in ["1", "1/d", "2", "2/d"] { scratch.makeDirectory(name) }
        scratch.link("current", to: "1")
      }
    ) { watched in
      let scratch = watched.scratch
      scratch.link("next", to: scratch("1"))
      scratch.move("next", "current")
      scratch.make("1/d/f")
      #expect(watched.told() == ["created current/d/f"])
      scratch.link("next", to: "2")
      scratch.move("next", "current")
      #expect(watched.told() == ["rootGone current/d/"] && !watched.source.isValid)
    }
  }

  @Test("moving a parent directory ends the source")
  func parent() {
    watchingPath("a/b/c", recursive: true, prepare: { for name in ["a", "a/b", "a/b/c"] { $0.makeDirectory(name) } }) {
      watched in
      watched.scratch.move("a", "z")
      #expect(watched.told() == ["rootGone a/b/c/"] && !watched.source.isValid)
    }
  }

  @Test("a relative path is resolved when the source is created")
  func relative() async {
    await #expect(processExitsWith: .success) {
      let scratch = Scratch()
      scratch.makeDirectory("src")
      try #require(chdir(scratch.path) == 0)
      let told = Notes<String>()
      let source = try FileChangeSource(path: "src", recursive: true) { told.add(contentsOf: $1.map(\.path.string)) }
      try RunLoop.current.add(source, forMode: .default)
      try #require(chdir("/") == 0)
      scratch.makeDirectory("src/later")
      RunLoop.current.drain()
      scratch.make("src/later/f")
      RunLoop.current.drain()
      #expect(told.all == ["src/later", "src/later/f"] && source.watchCount == 2)
    }
  }

  @Test("an overflow that swallows the end of the root is followed by it", arguments: [false, true])
  func overflow(isRecursive: Bool) {
    watchingPath("d", recursive: isRecursive, limit: 10, prepare: { $0.makeDirectory("d") }) { watched in
      let scratch = watched.scratch
      for number in 0..<20 { scratch.make("d/\(number)") }
      for number in 0..<20 { unlink(scratch("d/\(number)")) }
      rmdir(scratch("d"))
      scratch.makeDirectory("d")
      let kinds = watched.told().suffix(2).map { $0.split(separator: " ")[0] }
      #expect(kinds == ["overflow", "rootGone"] && !watched.source.isValid)
    }
  }

  @Test("an overflow of the kernel's queue that swallows the end of the root is followed by it")
  func kernelOverflow() {
    watchingPath(
      "d", recursive: true,
      prepare: { scratch in
        scratch.makeDirectory("d")
        for name in ["1", "2"] { scratch.make("d/\(name)") }
      }
    ) { watched in
      let scratch = watched.scratch
      // The kernel merges equal consecutive events, so the operation alternates between two.
      for round in 0..<40_000 { chmod(scratch("d/\(round % 2 + 1)"), 0o600) }
      for name in ["1", "2"] { unlink(scratch("d/\(name)")) }
      rmdir(scratch("d"))
      scratch.makeDirectory("d")
      watched.loop.run { !watched.source.isValid }
      #expect(watched.told().suffix(2) == ["overflow d/", "rootGone d/"])
    }
  }
}

@Suite("Names that are exchanged", .timeLimit(.minutes(20)))
struct FileChangeExchangeTests {
  @Test("two directories that are exchanged both move, and both stay watched")
  func directories() {
    watchingPath("", recursive: true, prepare: { for name in ["live", "next", "next/d"] { $0.makeDirectory(name) } }) {
      watched in
      let scratch = watched.scratch
      #expect(exchange(scratch("live"), scratch("next")))
      #expect(watched.told() == ["movedFrom live/", "movedFrom next/", "movedTo next/", "movedTo live/"])
      for name in ["live/f", "next/f", "live/d/f"] { scratch.make(name) }
      #expect(watched.told() == ["created live/f", "created next/f", "created live/d/f"])
      #expect(watched.source.watchCount == 4)
    }
  }

  @Test("two files that are exchanged are both reported, in a tree and in a directory", arguments: [false, true])
  func files(isRecursive: Bool) {
    watchingPath("", recursive: isRecursive, prepare: { for name in ["a", "b"] { $0.make(name) } }) { watched in
      let scratch = watched.scratch
      #expect(exchange(scratch("a"), scratch("b")))
      #expect(watched.told() == ["movedFrom a", "movedFrom b", "movedTo b", "movedTo a"])
      // An exchange and its reversal look the same, so one name is removed to distinguish them.
      unlink(scratch("b"))
      _ = watched.told()
      scratch.move("a", "b")
      scratch.move("b", "a")
      #expect(watched.told() == ["movedFrom a", "movedTo b", "movedFrom b", "movedTo a"])
    }
  }

  @Test("double exchanges, and exchanges with unwatched names or other kinds of entries, are reported")
  func others() {
    watchingPath(
      "", recursive: true,
      prepare: { scratch in
        for name in ["a", "a/x", "b", "b/y"] { scratch.makeDirectory(name) }
        scratch.make("f")
      }
    ) { watched in
      let scratch = watched.scratch
      let outside = Scratch()
      outside.makeDirectory("d")
      outside.make("d/z")
      var mirror = Mirror(scratch.path)
      for (path, isDirectory) in listing(scratch.path) { mirror.put(path, isDirectory: isDirectory) }
      let changes = Notes<FileChange>()
      let other = try FileChangeSource(path: .init(scratch.path), recursive: true) { changes.add(contentsOf: $1) }
      try watched.loop.add(other, forMode: .default)
      for _ in 0..<2 { exchange(scratch("a"), scratch("b")) }
      exchange(outside("d"), scratch("b"))
      exchange(scratch("a"), scratch("f"))
      watched.loop.drain()
      for change in changes.all { mirror.apply(change) }
      #expect(mirror.entries == listing(scratch.path))
      for name in ["b/1", "f/2", "f/x/3"] { scratch.make(name) }
      watched.loop.drain()
      #expect(scratch.text(changes.all.suffix(3)) == ["created b/1", "created f/2", "created f/x/3"])
      other.invalidate()
    }
  }
}
