// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

@Suite("File changes: one queue for many sources", .timeLimit(.minutes(20)))
struct FileChangeSharingTests {
  @Test("more sources than the user may have queues share one, and each reports only its own changes")
  func many() async {
    await #expect(processExitsWith: .success) {
      SourceRig.onThread { loop in
        do {
          let scratch = Scratch()
          let told = Notes<(Int, String)>()
          var sources: [FileChangeSource] = []
          for number in 0..<300 {
            scratch.makeDirectory("\(number)")
            let source = try FileChangeSource(path: .init(scratch("\(number)")), recursive: true) { _, changes in
              for line in scratch.text(changes) { told.add((number, line)) }
            }
            try loop.add(source, forMode: .default)
            sources.append(source)
          }
          #expect(DescriptorCensus().count("inotify") == 1)
          for number in 0..<300 { scratch.make("\(number)/f") }
          loop.run { told.count == 300 }
          loop.drain()
          #expect(told.all.allSatisfy { $0.1 == "created \($0.0)/f" } && Set(told.all.map(\.0)).count == 300)
          for source in sources.dropLast() { source.invalidate() }
          scratch.make("299/g")
          loop.run { told.count == 301 }
          #expect(DescriptorCensus().count("inotify") == 1)
          sources.last?.invalidate()
          #expect(DescriptorCensus().count("inotify") == 0)
        } catch { Issue.record(error) }
      }
    }
  }

  @Test("sources of one directory report what they request, and removing one leaves the others' watches")
  func overlapping() {
    SourceRig.onThreadThrowing { loop in
      let scratch = Scratch()
      scratch.makeDirectory("d")
      let queue = try WatchQueue()
      let (all, some, tree) = (Notes<String>(), Notes<String>(), Notes<String>())
      let first = try FileChangeSource(.init(scratch("d")), false, .all, ownQueue: queue) {
        all.add(contentsOf: scratch.text($1))
      }
      let second = try FileChangeSource(.init(scratch("d")), false, [.removed], ownQueue: queue) {
        some.add(contentsOf: scratch.text($1))
      }
      let third = try FileChangeSource(.init(scratch.path), true, [.created], ownQueue: queue) {
        tree.add(contentsOf: scratch.text($1))
      }
      #expect(queue.watchCount == 2)
      for source in [first, second, third] { try loop.add(source, forMode: .default) }
      scratch.make("d/f", text: "x")
      unlink(scratch("d/f"))
      loop.run { all.count == 3 && some.count == 1 && tree.count == 1 }
      #expect(all.all == ["created d/f", "modified d/f", "removed d/f"] && some.all == ["removed d/f"])
      first.invalidate()
      second.invalidate()
      #expect(queue.watchCount == 2)
      scratch.make("d/g")
      loop.run { tree.count == 2 }
      #expect(tree.all == ["created d/f", "created d/g"] && all.count == 3 && some.count == 1)
      third.invalidate()
    }
  }

  @Test("a source that re-adds a removed watch receives none of the changes before")
  func again() throws {
    let scratch = Scratch()
    let queue = try WatchQueue()
    let mask = FileChangeSource.Events([.created, .removed]).mask
    let (first, second) = (try WatchInbox(mask: mask, limit: 100), try WatchInbox(mask: mask, limit: 100))
    for inbox in [first, second] { #expect(queue.accept(inbox)) }
    let directory = try OpenFile.root(.init(scratch.path), isDirectory: true)
    let watch = try queue.add(directory, first)
    #expect(try queue.add(directory, second) == watch)
    scratch.make("before")
    // The other source reads it for both.
    #expect(try queue.take(for: second).records.count == 1)
    queue.remove(watch, first)
    scratch.make("meanwhile")
    #expect(try queue.take(for: second).records.count == 1)
    #expect(try queue.add(directory, first) == watch)
    scratch.make("after")
    #expect(try queue.take(for: second).records.count == 1)
    #expect(try queue.take(for: first).records.map(\.name) == [Array("after".utf8)])
  }

  @Test("changes that one loop reads for a source of another loop wake that loop")
  func otherLoop() throws {
    let scratch = Scratch()
    for name in ["a", "b"] { scratch.makeDirectory(name) }
    let queue = try WatchQueue()
    let told = Notes<String>()
    let (thread, loop) = SourceRig.startLoop()
    let other = try FileChangeSource(.init(scratch("b")), false, .all, ownQueue: queue) {
      told.add(contentsOf: scratch.text($1))
    }
    // In a mode that its loop does not run yet, so that the other loop reads the queue for it.
    try loop.add(other, forMode: "later")
    SourceRig.onThread { here in
      do {
        let seen = Notes<Int>()
        let source = try FileChangeSource(.init(scratch("a")), false, .all, ownQueue: queue) { seen.add($1.count) }
        try here.add(source, forMode: .default)
        scratch.make("b/f")
        scratch.make("a/f")
        here.run { seen.count == 1 }
        source.invalidate()
      } catch { Issue.record(error) }
    }
    #expect(told.count == 0)
    loop.perform { loop.run(mode: "later", for: .unlimited, returnAfterSourceHandled: true) }
    waitUntil { told.count == 1 }
    #expect(told.all == ["created b/f"])
    other.invalidate()
    // The run in the other mode may not have returned yet, and the run in the default mode must stop.
    loop.perform { loop.stop() }
    thread.join()
  }
}

extension SourceRig {
  /// Runs `body` with the loop of a new thread, and records the error that it throws.
  fileprivate static func onThreadThrowing(_ body: @escaping @Sendable (RunLoop) throws -> Void) {
    onThread { loop in
      do { try body(loop) } catch { Issue.record(error) }
    }
  }
}
