// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

#if DEBUG
  @Suite("File changes when system calls fail", .timeLimit(.minutes(20)))
  struct FileChangeFaultTests {
    @Test("a source without an inotify queue is rejected", arguments: [SystemCall.watchCreate, .eventCreate])
    func create(call: SystemCall) async {
      // In its own process, as other tests would already have created the queue.
      switch call {
      case .watchCreate:
        await #expect(processExitsWith: .success) { FileChangeFaultTests.makeSource(whereFails: .watchCreate) }
      default:
        await #expect(processExitsWith: .success) { FileChangeFaultTests.makeSource(whereFails: .eventCreate) }
      }
    }

    /// Creates a source while a call fails.
    private static func makeSource(whereFails call: SystemCall) {
      let plan = FaultPlan()
      plan.plan(call, .fails(EMFILE))
      _ = plan.rule {
        #expect(throws: FileChangeError.noQueue(SystemError(call: call.rawValue, number: EMFILE))) {
          _ = try FileChangeSource(path: "/tmp") { _, _ in }
        }
      }
      #expect(plan.isUsedUp)
    }

    @Test("a tree that cannot be watched completely is rejected", arguments: [SystemCall.watchAdd, .directoryOpen])
    func addBelow(call: SystemCall) {
      let scratch = Scratch()
      scratch.makeDirectory("a")
      let plan = FaultPlan()
      plan.plan(call, nil, .fails(ENOSPC))
      plan.rule {
        let error = SystemError(call: call.rawValue, number: ENOSPC)
        #expect(throws: FileChangeError.cannotWatch(.init(scratch("a")), error)) {
          _ = try FileChangeSource(path: .init(scratch.path), recursive: true) { _, _ in }
        }
      }
      #expect(plan.isUsedUp)
    }

    @Test("a path that could not be examined once is still followed where it was watched")
    func onTheWay() {
      watchingPath(
        "link", isFollowing: true,
        prepare: { scratch in
          for name in ["a", "b"] { scratch.make(name) }
          scratch.link("link", to: "a")
        }
      ) { watched in
        let scratch = watched.scratch
        func swap(to target: String) {
          scratch.link("next", to: target)
          scratch.move("next", "link")
        }
        let plan = FaultPlan()
        plan.plan(.openFile, .fails(EMFILE), .fails(EMFILE))
        let told = plan.rule {
          swap(to: "b")
          return watched.told()
        }
        let error = SystemError(call: SystemCall.openFile.rawValue, number: EMFILE)
        #expect(told == ["unwatched(\(error)) link"] && plan.isUsedUp)
        swap(to: "b")
        #expect(watched.told() == ["replaced link"])
      }
    }

    @Test("an unreadable directory is named in the error, and the others are watched")
    func unreadable() throws {
      let scratch = Scratch()
      for name in ["a", "b"] { scratch.makeDirectory(name) }
      let plan = FaultPlan()
      plan.plan(.watchAdd, nil, .fails(EACCES))
      let source = try plan.rule {
        try FileChangeSource(path: .init(scratch.path), recursive: true) { _, _ in }
      }
      #expect(source.unreadable.count == 1 && source.watchCount == 2)
      source.invalidate()
    }

    @Test("a new directory that cannot be watched is reported", arguments: [SystemCall.watchAdd, .directoryOpen])
    func unwatched(call: SystemCall) {
      watching(hasOwnQueue: true) { watched in
        let plan = FaultPlan()
        plan.plan(call, .fails(ENOSPC))
        watched.scratch.makeDirectory("d")
        plan.rule {
          let error = SystemError(call: call.rawValue, number: ENOSPC)
          #expect(watched.told() == ["created d/", "unwatched(\(error)) d/"])
        }
        #expect(plan.isUsedUp)
      }
    }

    @Test("a queue that cannot be read ends the source; an interrupt does not")
    func read() {
      watching(hasOwnQueue: true) { watched in
        let plan = FaultPlan()
        plan.plan(.watchRead, .fails(EINTR), nil, .fails(EIO))
        plan.rule {
          watched.scratch.make("f")
          watched.loop.run { !watched.all.isEmpty }
          watched.scratch.make("g")
          watched.loop.run { !watched.source.isValid }
        }
        let failure = FileChange.Kind.failed(SystemError(call: "read (inotify)", number: EIO))
        #expect(watched.all.map(\.kind) == [.created, failure] && plan.isUsedUp)
      }
    }

    @Test("a mode without a descriptor rejects the source; a watch that cannot be removed does no harm")
    func others() {
      watching(prepare: { $0.makeDirectory("d") }) { watched in
        let plan = FaultPlan()
        plan.plan(.epollCreate, .fails(EMFILE))
        #expect(throws: RunLoopError.self) { try plan.rule { try watched.loop.add(watched.source, forMode: "other") } }
        plan.plan(.watchRemove, .fails(EINVAL))
        rmdir(watched.scratch("d"))
        plan.rule { #expect(watched.told() == ["removed d/"]) }
        #expect(watched.source.watchCount == 1)
      }
    }
  }
#endif

@Suite("File changes as a sequence, and their lifetimes", .timeLimit(.minutes(20)))
struct FileChangeSequenceTests {
  @Test("a sequence yields changes, and ends with the root")
  func sequence() async throws {
    let scratch = Scratch()
    scratch.makeDirectory("root")
    let (thread, loop) = SourceRig.startLoop()
    let changes = try FileChangeSource.changes(of: .init(scratch("root")), recursive: true, on: loop)
    scratch.make("root/f")
    unlink(scratch("root/f"))
    rmdir(scratch("root"))
    var told: [FileChange] = []
    for await change in changes { told.append(change) }
    #expect(scratch.text(told) == ["created root/f", "removed root/f", "rootGone root/"])
    loop.stop()
    thread.join()
  }

  @Test("a full buffer ends in an overflow, and the end of the root is still reported")
  func overflow() async throws {
    let scratch = Scratch()
    scratch.makeDirectory("root")
    let (thread, loop) = SourceRig.startLoop()
    let changes = try FileChangeSource.changes(of: .init(scratch("root")), on: loop, bufferSize: 3)
    for number in 0..<10 { scratch.make("root/\(number)") }
    let witness = Notes<FileChange>()
    let other = try FileChangeSource(path: .init(scratch.path)) { witness.add(contentsOf: $1) }
    try loop.add(other, forMode: .default)
    scratch.make("done")
    waitUntil { witness.count > 0 }
    loop.stop()
    thread.join()
    var told: [FileChange] = []
    for await change in changes { told.append(change) }
    #expect(told.count <= 3)
    #expect(told.isEmpty || told.map(\.kind) == [.created, .created, .overflow])
  }

  @Test("the handler and the queue are released with the source")
  func released() async {
    await #expect(processExitsWith: .success) {
      let before = DescriptorCensus()
      let log = Notes<String>()
      let scratch = Scratch()
      SourceRig.onThread { loop in
        do {
          let source: FileChangeSource
          do {
            let probe = Token { log.add("released") }
            source = try FileChangeSource(path: .init(scratch.path), recursive: true) { source, _ in
              source.invalidate()
              probe.touch()
              log.add("called")
            }
          }
          for mode: RunLoop.Mode in [.default, "other", .common] { try loop.add(source, forMode: mode) }
          #expect(loop.contains(source, forMode: "other"))
          loop.remove(source, forMode: "other")
          #expect(!loop.contains(source, forMode: "other") && loop.contains(source, forMode: .common))
          scratch.make("f")
          while log.count < 2 { loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true) }
          #expect(log.all == ["called", "released"])
          #expect(DescriptorCensus().count("inotify") == 0)
          // Sources kept only by a loop are released with its thread.
          for _ in 0..<10 { try loop.add(FileChangeSource(path: "/tmp") { _, _ in }, forMode: .default) }
        } catch {
          Issue.record(error)
        }
      }
      let after = DescriptorCensus()
      #expect(before.isFollowed(by: after), "\(before), then \(after)")
    }
  }
}
