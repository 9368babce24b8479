// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

extension Scratch {
  /// Formats changes as text, with paths relative to this directory.
  func text(_ changes: [FileChange]) -> [String] {
    changes.map { change in
      let name = change.path.string
      let short = name == path ? "." : name.hasPrefix(path + "/") ? String(name.dropFirst(path.count + 1)) : name
      return "\(change.kind) \(short)\(change.isDirectory && name != path ? "/" : "")"
    }
  }
}

/// A watched new directory, whose reports are collected until a file with a certain name is created.
struct WatchedScratch {
  let scratch = Scratch()
  let loop: RunLoop
  let source: FileChangeSource
  private let changes = Notes<FileChange>()
  private let marks = Notes<Int>()

  init(
    _ loop: RunLoop, recursive: Bool = true, events: FileChangeSource.Events = .all, ownQueue: WatchQueue? = nil,
    limit: Int = WatchInbox.defaultLimit, prepare: (Scratch) -> Void = { _ in }
  ) throws {
    prepare(scratch)
    self.loop = loop
    source = try FileChangeSource(.init(scratch.path), recursive, events, ownQueue: ownQueue, limit: limit) {
      [changes] _, found in changes.add(contentsOf: found)
    }
    try loop.add(source, forMode: .default)
  }

  /// Returns all changes reported since the last call.
  func told(file: StaticString = #fileID, line: UInt = #line) -> [String] {
    let mark = "mark\(marks.count)"
    let start = marks.all.reduce(0, +)
    scratch.make(mark)
    let path = FileChangeSource.Path(scratch(mark))
    loop.run(
      until: { changes.all.contains { $0.path == path || $0.kind == .rootGone } }, file: file, line: line)
    let all = changes.all
    marks.add(all.count - start)
    return scratch.text(Array(all[start...].filter { $0.path != path }))
  }

  var all: [FileChange] { changes.all }
}

/// Watches a new directory on a new thread.
///
/// The process's queue is shared by all running tests, so a test about the queue itself uses its own.
func watching(
  recursive: Bool = true, events: FileChangeSource.Events = .all, hasOwnQueue: Bool = false,
  limit: Int = WatchInbox.defaultLimit, prepare: @escaping @Sendable (Scratch) -> Void = { _ in },
  _ body: @escaping @Sendable (WatchedScratch) throws -> Void
) {
  SourceRig.onThread { loop in
    do {
      let watched = try WatchedScratch(
        loop, recursive: recursive, events: events, ownQueue: hasOwnQueue ? WatchQueue() : nil, limit: limit,
        prepare: prepare)
      try body(watched)
      watched.source.invalidate()
    } catch {
      Issue.record(error)
    }
  }
}

@Suite("File changes", .timeLimit(.minutes(20)))
struct FileChangeTests {
  @Test("changes in a directory are reported in order")
  func directory() {
    watching(recursive: false) { watched in
      let scratch = watched.scratch
      scratch.make("a", text: "x")
      chmod(scratch("a"), 0o644)
      scratch.move("a", "b")
      unlink(scratch("b"))
      scratch.makeDirectory("d")
      scratch.make("d/unseen")
      #expect(
        watched.told() == [
          "created a", "modified a", "attributes a", "movedFrom a", "movedTo b", "removed b", "created d/",
        ])
      let moves = watched.all.filter { $0.cookie != 0 }
      #expect(moves.count == 2 && moves[0].cookie == moves[1].cookie)
      #expect(watched.source.watchCount == 1)
    }
  }

  @Test("a handler that removes its source is not called until the source is in a loop again, and misses nothing")
  func removing() {
    SourceRig.onThread { loop in
      let (scratch, outside) = (Scratch(), Scratch())
      for directory in ["a", "b", "c"] {
        outside.makeDirectory(directory)
        for number in 0..<600 { outside.make("\(directory)/\(number)") }
      }
      let calls = Notes<Int>()
      do {
        let source = try FileChangeSource(.init(scratch.path), true, .all, ownQueue: WatchQueue()) { source, changes in
          calls.add(changes.count)
          loop.remove(source, forMode: .default)
        }
        #expect(rename(outside.path, scratch("moved")) == 0)
        loop.add(RunLoop.Source {}, forMode: .default)
        // The directory itself, three in it, and their files.
        while calls.all.reduce(0, +) < 1804 {
          let count = calls.count + 1
          try loop.add(source, forMode: .default)
          loop.run { calls.count >= count }
          for _ in 0..<3 { loop.run(mode: .default, for: .zero) }
          #expect(calls.count == count)
        }
        #expect(calls.count > 1)
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("only requested kinds of changes are reported")
  func filter() {
    watching(events: [.created, .moved]) { watched in
      let scratch = watched.scratch
      scratch.make("a", text: "x")
      chmod(scratch("a"), 0o644)
      scratch.move("a", "b")
      unlink(scratch("b"))
      #expect(watched.told() == ["created a", "movedFrom a", "movedTo b"])
    }
  }

  @Test("a single file is watched until it is removed")
  func file() {
    SourceRig.onThread { loop in
      let scratch = Scratch()
      let changes = Notes<FileChange>()
      scratch.make("f")
      do {
        let source = try FileChangeSource(path: .init(scratch("f"))) { changes.add(contentsOf: $1) }
        try loop.add(source, forMode: .default)
        scratch.make("f", text: "more")
        loop.run { changes.count > 0 }
        unlink(scratch("f"))
        loop.run { !source.isValid }
        let told = scratch.text(changes.all)
        #expect(told.first == "modified f" && told.last == "rootGone f")
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("new directories are watched, and each of their entries is reported once")
  func newDirectories() {
    watching { watched in
      let scratch = watched.scratch
      for name in ["a", "a/b", "a/b/c"] { scratch.makeDirectory(name) }
      scratch.make("a/b/c/f")
      scratch.make("a/g")
      #expect(
        watched.told().sorted() == ["created a/", "created a/b/", "created a/b/c/", "created a/b/c/f", "created a/g"])
      scratch.make("a/b/h")
      unlink(scratch("a/g"))
      scratch.make("a/g")
      #expect(watched.told() == ["created a/b/h", "removed a/g", "created a/g"])
      #expect(watched.source.watchCount == 4)
    }
  }

  @Test("a directory moved within the tree is followed, moved out is not, and moved in is reported")
  func moves() {
    let outside = Scratch()
    outside.makeDirectory("in")
    outside.make("in/f")
    watching(prepare: {
      for name in ["a", "a/b", "c"] { $0.makeDirectory(name) }
    }) { watched in
      let scratch = watched.scratch
      scratch.move("a", "c/a2")
      scratch.make("c/a2/b/f")
      #expect(watched.told() == ["movedFrom a/", "movedTo c/a2/", "created c/a2/b/f"])
      precondition(rename(scratch("c/a2"), outside("gone")) == 0)
      #expect(watched.told() == ["movedFrom c/a2/"])
      outside.make("gone/b/later")
      #expect(watched.told() == [])
      #expect(watched.source.watchCount == 2)
      precondition(rename(outside("in"), scratch("c/in")) == 0)
      #expect(watched.told() == ["movedTo c/in/", "created c/in/f"])
      scratch.make("c/in/g")
      #expect(watched.told() == ["created c/in/g"])
    }
  }

  @Test("names that belonged to other directories when they were reported do not confuse the tree")
  func swapped() {
    watching(prepare: {
      for name in ["a", "b", "a/x", "b/y"] { $0.makeDirectory(name) }
    }) { watched in
      let scratch = watched.scratch
      // All of this before the first event is read.
      scratch.move("a", "t")
      scratch.move("b", "a")
      scratch.move("t", "b")
      scratch.makeDirectory("n")
      scratch.move("n", "m")
      scratch.makeDirectory("n")
      _ = watched.told()
      for name in ["a/y/1", "b/x/2", "n/3", "m/4"] { scratch.make(name) }
      #expect(watched.told() == ["created a/y/1", "created b/x/2", "created n/3", "created m/4"])
    }
  }

  @Test("the end of the root is reported, and ends the source")
  func rootGone() {
    watching { watched in
      let scratch = watched.scratch
      precondition(rename(scratch.path, scratch.path + "-moved") == 0)
      watched.loop.run { !watched.source.isValid }
      #expect(scratch.text(watched.all) == ["rootGone ."])
      precondition(rename(scratch.path + "-moved", scratch.path) == 0)
      #expect(watched.source.watchCount == 0)
    }
  }

  @Test("a watched path need not be text")
  func bytes() {
    watching { watched in
      let path = FileChangeSource.Path(watched.scratch.path).appending([0xff, 0x41])
      let number = open(path.bytes.map { CChar(bitPattern: $0) } + [0], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      precondition(number >= 0)
      close(number)
      _ = watched.told()
      #expect(watched.all.first?.path == path && path.string.hasSuffix("/\u{fffd}A"))
    }
  }

  @Test("an overflow is reported, and the tree stays watched")
  func overflow() {
    watching(hasOwnQueue: true) { watched in
      let scratch = watched.scratch
      scratch.make("1")
      scratch.make("2")
      // The kernel merges equal consecutive events, so the operation alternates between two.
      for round in 0..<40_000 { chmod(scratch(round % 2 == 0 ? "1" : "2"), 0o600) }
      for name in ["late", "late/er"] { scratch.makeDirectory(name) }
      watched.loop.run { watched.all.contains { $0.kind == .overflow } }
      watched.loop.drain()
      #expect(watched.source.watchCount == 3)
      _ = watched.told()
      scratch.make("late/er/f")
      #expect(watched.told() == ["created late/er/f"])
    }
  }

  @Test("no entry is lost of a tree of five hundred files created while it is watched")
  func many() {
    watching(events: .created) { watched in
      let scratch = watched.scratch
      let maker = SourceRig.start {
        for top in 0..<10 {
          scratch.makeDirectory("\(top)")
          for below in 0..<5 {
            scratch.makeDirectory("\(top)/\(below)")
            for file in 0..<10 { scratch.make("\(top)/\(below)/\(file)") }
          }
        }
      }
      watched.loop.run { Set(watched.all).count >= 560 }
      maker.join()
      _ = watched.told()
      let paths = watched.all.map(\.path)
      #expect(Set(paths).count == paths.count && paths.count == 561)
      #expect(watched.source.watchCount == 61)
    }
  }

  @Test("a link that is named as a directory is followed, and the changes have its path")
  func link() throws {
    let scratch = Scratch()
    scratch.makeDirectory("d")
    scratch.makeDirectory("d/e")
    try #require(symlink(scratch("d"), scratch("link")) == 0)
    SourceRig.onThread { loop in
      do {
        for (name, isRecursive) in [("link/", true), ("link", true), ("link/", false), ("link//", false)] {
          let told = Notes<FileChange>()
          let source = try FileChangeSource(path: .init(scratch(name)), recursive: isRecursive) {
            told.add(contentsOf: $1)
          }
          try loop.add(source, forMode: .default)
          scratch.make("d/f")
          loop.run { told.count > 0 }
          #expect(told.all.map(\.path.string) == [scratch(name) + (name == "link" ? "/f" : "f")])
          #expect(source.watchCount == (isRecursive ? 2 : 1))
          unlink(scratch("d/f"))
          source.invalidate()
        }
      } catch { Issue.record(error) }
    }
  }

  @Test("a path with a zero byte is rejected, and not truncated")
  func zeroByte() {
    let path = FileChangeSource.Path("/tmp\0/x")
    for isRecursive in [false, true] {
      #expect(throws: FileChangeError.notAPath(path)) {
        try FileChangeSource(path: path, recursive: isRecursive) { _, _ in }
      }
    }
  }

  @Test("a path that cannot be watched is rejected with its name")
  func rejected() {
    let scratch = Scratch()
    scratch.make("f")
    let gone = FileChangeSource.Path(scratch("gone"))
    #expect(throws: FileChangeError.cannotWatch(gone, SystemError(call: "open", number: ENOENT))) {
      try FileChangeSource(path: gone) { _, _ in }
    }
    let file = FileChangeSource.Path(scratch("f"))
    #expect(throws: FileChangeError.cannotWatch(file, SystemError(call: "open", number: ENOTDIR))) {
      // A path given as text has the same result.
      try FileChangeSource(path: scratch("f"), recursive: true) { _, _ in }
    }
  }
}
