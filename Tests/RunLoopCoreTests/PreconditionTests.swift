// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Threads that may run a loop", .timeLimit(.minutes(20)))
struct PreconditionTests {
  @Test("a run by another thread fails with both threads' names", .rule(.r18, .m15))
  func run() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      asStranger { $0.run(mode: .default, for: Duration.zero) }
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("\"the owner\"") && message.contains("\"a stranger\""))
  }

  @Test("a run in seconds by another thread fails", .rule(.r18, .m15))
  func runSeconds() async {
    await #expect(processExitsWith: .failure) { asStranger { $0.run(mode: .default, for: 0.0) } }
  }

  @Test("a run until stopped by another thread fails", .rule(.r18, .m15))
  func runUntilStopped() async {
    await #expect(processExitsWith: .failure) { asStranger { $0.runUntilStopped() } }
  }

  @Test("a run of the main loop by another thread fails", .rule(.r18, .m15))
  func mainLoop() async {
    await #expect(processExitsWith: .failure) {
      onNewThread { _ = RunLoop.main.run(mode: .default, for: Duration.zero) }
    }
  }

  @Test("a run in the common pseudo-mode by another thread fails too", .rule(.r18, .m15))
  func commonMode() async {
    await #expect(processExitsWith: .failure) { asStranger { $0.run(mode: .common, for: Duration.zero) } }
  }

  @Test("a run, by another thread, of a loop whose thread has ended fails", .rule(.r18, .m15))
  func ended() async {
    await #expect(processExitsWith: .failure) {
      let loop = onVirtualTime { _, loop in loop }
      onNewThread { _ = loop.run(mode: .default, for: Duration.zero) }
    }
  }

  @Test(
    "Foundation's run by another thread does nothing, is counted, and is reported with both threads' names",
    .rule(.r18, .m15))
  func foundationRun() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<3 {
        asStranger {
          $0.run()
          precondition($0.statistics.rejectionCount == 1)
        }
      }
      precondition(RunLoop.diagnosticCount == 3)
    }
    let lines = diagnostics(try #require(result).standardErrorContent)
    #expect(lines.count == 3)
    for line in lines {
      #expect(line.contains("\"the owner\"") && line.contains("\"a stranger\" and did nothing"), "\(line)")
    }
  }

  @Test("a run on a loop that has ended is finished", .rule(.r17))
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

@Suite("Mistakes are reported", .timeLimit(.minutes(20)))
struct DiagnosticTests {
  @Test(
    "runs in the common pseudo-mode: the first eight, then those whose number is a power of two, with the number",
    .rule(.r16))
  func commonRun() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      onVirtualTime { _, loop in
        for _ in 0..<100 { _ = loop.run(mode: .common, for: Duration.zero) }
      }
      precondition(RunLoop.diagnosticCount == 100)
    }
    let lines = diagnostics(try #require(result).standardErrorContent)
    #expect(lines.count == 8 + 3)
    #expect(lines.prefix(8).allSatisfy { $0 == lines[0] && !$0.contains("so far") })
    for (line, number) in zip(lines.dropFirst(8), [16, 32, 64]) {
      #expect(line == lines[0] + " (\(number) reports of this kind so far)")
    }
  }

  @Test(
    "blocks for no mode, items of another loop, and work for a loop that has ended: with the item, the loop and the thread",
    .rule(.r56, .r87, .r99b, .r117, .m21)
  )
  func rejections() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<3 {
        let ended = onVirtualTime { _, loop in
          loop.perform(inModes: []) {}
          nameThread("first")
          let observer = loop.observe(Log())
          onVirtualTime { _, second in
            nameThread("second")
            _ = second.add(observer, forMode: .default)
          }
          return loop
        }
        ended.perform {}
        ended.add(RunLoop.Source {}, forMode: .default)
      }
    }
    let lines = diagnostics(try #require(result).standardErrorContent)
    #expect(lines.count == 4 * 3)
    #expect(lines.count { $0.contains("rejected a block because its list of modes is empty") } == 3)
    #expect(lines.count { $0.contains("rejected a block, which could never run") } == 3)
    #expect(lines.count { $0.contains("which has ended rejected Source 0x") } == 3)
    let bound = lines.filter { $0.contains("Observer 0x") && $0.contains("was not added to that of thread") }
    #expect(bound.count == 3)
    #expect(bound.allSatisfy { $0.contains("\"first\" and was") && $0.contains("\"second\": remove it") })
  }

  @Test("the loop of a thread that has not been started is not one that has ended", .rule(.m21))
  func notStarted() {
    let promise = LoopPromise()
    #expect(promise.loop?.threadDescription == "a thread that has not been started")
  }

  @Test("valid calls without an effect are not reported", .rule(.r34, .r46, .r74, .m20))
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
    #expect(diagnostics(try #require(result).standardErrorContent) == [])
  }
}

/// Runs `body` on a thread named "a stranger", with the loop of a thread named "the owner".
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
