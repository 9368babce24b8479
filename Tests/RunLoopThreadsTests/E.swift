import RunLoopCore
import Testing

@testable import RunLoopThreads

@Suite("Smoke", .timeLimit(.minutes(1)))
struct Smoke {
  @Test func resident() async throws {
    let thread = try ResidentThread(name: "smoke")
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let again = try await thread.run { RunLoop.callingThreadID }
    #expect(id == again)
    let token = try thread.perform(afterDelay: .seconds(100)) {}
    #expect(thread.stop() == .draining)
    #expect(throws: ThreadError.self) { try thread.perform {} }
    let report = await thread.finished()
    #expect(report.ran == 2)
    #expect(report.cancelled == 1)
    #expect(report.refused == 1)
    #expect(token.state == .cancelled)
    #expect(try thread.join().ran == 2)
  }

  actor Pinned {
    nonisolated let thread: ResidentThread
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
    init(_ thread: ResidentThread) { self.thread = thread }
    func id() -> Int32 { RunLoop.callingThreadID }
  }

  @Test func actorOnThread() async throws {
    let thread = try ResidentThread(name: "actor")
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let pinned = Pinned(thread)
    #expect(await pinned.id() == id)
    let task = Task(executorPreference: thread) { RunLoop.callingThreadID }
    #expect(await task.value == id)
    #expect(try thread.performAndWait { thread.isIsolatingCurrentContext() } == true)
  }

  @Test func exits() throws {
    final class Probe: Sendable {}
    weak var weakProbe: Probe?
    weak var weakThread: Thread?
    do {
      let probe = Probe()
      weakProbe = probe
      let thread = Thread { _ = probe; Thread.exit() }
      weakThread = thread
      thread.start()
      try thread.join()
      #expect(thread.isFinished)
    }
    #expect(weakProbe == nil)
    #expect(weakThread == nil)
  }

  @Test func cycle() throws {
    let a = try ResidentThread(name: "a")
    let b = try ResidentThread(name: "b")
    #expect(throws: ThreadError.wouldDeadlock(cycle: ["thread \"b\"", "thread \"a\"", "thread \"b\""])) {
      try a.performAndWait { try b.performAndWait { try a.performAndWait {} } }
    }
  }
}
