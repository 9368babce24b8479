// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Who may run a loop", .timeLimit(.minutes(5)))
struct PreconditionTests {
  // R18, M15
  @Test("a run by another thread fails with both threads' names")
  func run() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      asStranger { $0.run(mode: .default, for: Duration.zero) }
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("\"the owner\"") && message.contains("\"a stranger\""))
  }

  // R18, M15
  @Test("a run in seconds by another thread fails")
  func runSeconds() async {
    await #expect(processExitsWith: .failure) { asStranger { $0.run(mode: .default, for: 0.0) } }
  }

  // R18, M15
  @Test("a run until stopped by another thread fails")
  func runUntilStopped() async {
    await #expect(processExitsWith: .failure) { asStranger { $0.runUntilStopped() } }
  }

  // R18, M15
  @Test("a run of the main loop by another thread fails")
  func mainLoop() async {
    await #expect(processExitsWith: .failure) {
      onNewThread { _ = RunLoop.main.run(mode: .default, for: Duration.zero) }
    }
  }

  // R18, M15
  @Test("a run in the common pseudo-mode by another thread fails too")
  func commonMode() async {
    await #expect(processExitsWith: .failure) { asStranger { $0.run(mode: .common, for: Duration.zero) } }
  }

  // R18, M15
  @Test("a run, by another thread, of a loop whose thread has ended fails")
  func ended() async {
    await #expect(processExitsWith: .failure) {
      let loop = onVirtualTime { _, loop in loop }
      onNewThread { _ = loop.run(mode: .default, for: Duration.zero) }
    }
  }

  // R18, M15
  @Test("Foundation's run by another thread does nothing, and says so once in a process")
  func foundationRun() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<3 { asStranger { $0.run() } }
    }
    #expect(complaints(try #require(result).standardErrorContent).count == 1)
  }

  // R17
  @Test("a run on a loop that has ended is finished")
  func endedOnItsThread() async {
    await #expect(processExitsWith: .success) {
      let result = onVirtualTime { _, loop in
        loop.keepAlive()
        RunLoop.detachCurrent()
        return RunLoop.current.run(mode: .default, for: Duration.zero)
      }
      precondition(result == .finished, "\(result)")
    }
  }
}

@Suite("Mistakes are reported", .timeLimit(.minutes(5)))
struct ComplaintTests {
  // R16
  @Test("runs in the common pseudo-mode: once in a process")
  func commonRun() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<3 { onVirtualTime { _, loop in _ = loop.run(mode: .common, for: Duration.zero) } }
    }
    #expect(complaints(try #require(result).standardErrorContent).count == 1)
  }

  // R56, R87, R99b, R117, M21
  @Test("blocks for no mode, items of another loop, and work for a loop that has ended: each once in a process")
  func refusals() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<3 {
        let ended = onVirtualTime { _, loop in
          loop.perform(inModes: []) {}
          let observer = loop.observe(Log())
          onVirtualTime { _, second in _ = second.add(observer, forMode: .default) }
          return loop
        }
        ended.perform {}
        ended.add(RunLoop.Source {}, forMode: .default)
      }
    }
    let lines = complaints(try #require(result).standardErrorContent)
    #expect(lines.count == 3)
    #expect(Set(lines).count == 3)
  }

  // R34, R46, R74, M20
  @Test("what is no mistake is not reported")
  func quiet() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      onVirtualTime { _, loop in
        loop.stop()
        loop.wakeUp()
        loop.run(mode: .default, for: Duration.zero)
        let source = loop.keepAlive()
        loop.add(source, forMode: .default)
        source.invalidate()
        loop.remove(source, forMode: .default)
      }
    }
    #expect(complaints(try #require(result).standardErrorContent) == [])
  }
}

/// Lets a thread named "a stranger" do something with the loop of a thread named "the owner".
private func asStranger(_ body: @escaping @Sendable (RunLoop) -> Void) {
  onVirtualTime { _, loop in
    nameThread("the owner")
    onNewThread {
      nameThread("a stranger")
      body(loop)
    }
  }
}

private func nameThread(_ name: String) {
  guard let file = fopen("/proc/thread-self/comm", "w") else { return }
  fputs(name, file)
  fclose(file)
}
