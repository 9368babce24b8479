// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

/// Waits until the task is cancelled.
private func untilCancelled() async throws { while true { try await Task.sleep(for: .seconds(1000)) } }

private struct Trouble: Error, CustomStringConvertible {
  var description: String { "trouble" }
}

@Suite("Graceful shutdowns", .timeLimit(.minutes(20)))
struct GracefulShutdownTests {
  private func shutdown(
    deadline: Duration = .seconds(1000), cutTime: Duration = .seconds(1000)
  ) throws -> GracefulShutdown {
    var options = GracefulShutdown.Options()
    options.signals = []
    options.deadline = deadline
    options.cutTime = cutTime
    return try GracefulShutdown(options: options)
  }

  private func outcomes(_ report: GracefulShutdown.Report) -> [String] {
    report.steps.map { "\($0.name) \($0.outcome)" }
  }

  @Test("steps run in reverse order of registration, and all of them even if one fails")
  func order() async throws {
    let shutdown = try shutdown()
    let log = Log()
    for name in ["a", "b", "c"] {
      shutdown.add(name) {
        log.write("\(name)<")
        await Task.yield()
        log.write(">\(name)")
        if name == "b" { throw Trouble() }
      }
    }
    #expect(!shutdown.hasBegun)
    shutdown.begin()
    shutdown.begin()
    let report = await shutdown.finished()
    #expect(log.text == "c< >c b< >b a< >a")
    #expect(outcomes(report) == ["c completed", "b failed: trouble", "a completed"])
    #expect(report.cause == .request && report.exitCode == 1 && shutdown.hasBegun)
    let description = "\(report)"
    #expect(description.hasPrefix("stopped by request in ") && description.hasSuffix("a completed"))
  }

  @Test("a shutdown without steps succeeds immediately")
  func nothing() async throws {
    let shutdown = try shutdown()
    shutdown.begin()
    let report = await shutdown.finished()
    #expect(report.steps.isEmpty && report.isComplete && report.exitCode == 0)
  }

  @Test("a step added by another one runs next")
  func addedMeanwhile() async throws {
    let shutdown = try shutdown()
    shutdown.add("first") {}
    shutdown.add("last") { shutdown.add("new") {} }
    shutdown.begin()
    #expect(outcomes(await shutdown.finished()) == ["last completed", "new completed", "first completed"])
  }

  @Test("at the deadline the current step is cancelled, and later ones run cancelled")
  func deadline() async throws {
    let shutdown = try shutdown(deadline: .milliseconds(1))
    shutdown.add("late") { if !Task.isCancelled { try await untilCancelled() } }
    shutdown.add("slow") { try await untilCancelled() }
    shutdown.begin()
    let report = await shutdown.finished()
    #expect(outcomes(report).sorted() == ["late cut short", "slow cut short"])
    #expect(report.exitCode == 1)
  }

  @Test("a program may cut a shutdown short before the deadline")
  func cutShort() async throws {
    let shutdown = try shutdown()
    shutdown.add("last") { if !Task.isCancelled { try await untilCancelled() } }
    shutdown.add("slow") {
      shutdown.cutShort()
      try await untilCancelled()
    }
    shutdown.begin()
    #expect(outcomes(await shutdown.finished()).sorted() == ["last cut short", "slow cut short"])
  }

  @Test("a step's cancellation handler may use the shutdown, and a step that it adds runs cancelled")
  func usedWhileCancelled() async throws {
    let shutdown = try shutdown()
    let log = Log()
    let start = AsyncStream<Void>.makeStream()
    let end = AsyncStream<Void>.makeStream()
    shutdown.add("slow") {
      await withTaskCancellationHandler {
        start.continuation.finish()
        // In another task, which is not cancelled: only the handler ends the step.
        await Task.detached { for await _ in end.stream {} }.value
      } onCancel: {
        shutdown.cutShort()
        let isTaken = shutdown.add("new") { log.write("new cancelled: \(Task.isCancelled)") }
        log.write("begun: \(shutdown.hasBegun), taken: \(isTaken);")
        end.continuation.finish()
      }
    }
    shutdown.begin()
    for await _ in start.stream {}
    shutdown.cutShort()
    #expect(outcomes(await shutdown.finished()).sorted() == ["new cut short", "slow cut short"])
    #expect(log.count(of: "begun: true, taken: true;") == 1 && log.count(of: "new cancelled: true") == 1)
  }

  @Test("a step is rejected once the shutdown is over, and does not run")
  func addedTooLate() async throws {
    let shutdown = try shutdown()
    let isTaken = shutdown.add("step") {}
    shutdown.begin()
    let report = await shutdown.finished()
    let isTakenLate = shutdown.add("late") { Issue.record("it runs") }
    #expect(isTaken && !isTakenLate && outcomes(report) == ["step completed"])
  }

  @Test("a step that ignores cancellation is abandoned, and does not keep others from ending")
  func abandoned() async throws {
    let shutdown = try shutdown(deadline: .milliseconds(1), cutTime: .milliseconds(1))
    let end = AsyncStream<Void>.makeStream()
    let other = AsyncStream<Void>.makeStream()
    shutdown.add("other") { other.continuation.finish() }
    // An unstructured task is not cancelled with the step.
    shutdown.add("deaf") { await Task.detached { for await _ in end.stream {} }.value }
    shutdown.begin()
    for await _ in other.stream {}
    let report = await shutdown.finished()
    #expect(outcomes(report).contains("deaf abandoned") && report.exitCode == 1)
    end.continuation.finish()
  }

  @Test("a shutdown cut short by another thread as it begins still abandons an unresponsive step")
  func cutWhileBeginning() async throws {
    let end = AsyncStream<Void>.makeStream()
    let timers = Box<[Timer]>([])
    let cut = Box<(@Sendable () -> Void)?>(nil)
    let course = ShutdownCourse(.init(), nil) { _, block in
      // The timer of the deadline is not installed yet.
      let cutNow = cut.value
      cut.value = nil
      cutNow?()
      let timer = Timer(timeInterval: 1000, repeats: false, block: block)
      timers.update { $0.append(timer) }
      return timer
    }
    cut.value = { course.cut() }
    course.add("deaf") { await Task.detached { for await _ in end.stream {} }.value }
    course.begin(.request)
    let made = timers.value
    // The second timer was created for the deadline.
    try #require(made.map(\.isValid) == [true, false])
    made[0].fire()
    #expect(outcomes(await course.finished()) == ["deaf abandoned"])
    end.continuation.finish()
  }

  @Test(
    "in a forked child a signal begins the shutdown, which succeeds immediately without steps",
    .disabled(if: isSanitizedForThreads))
  func signals() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        var options = GracefulShutdown.Options()
        options.signals = [SIGTERM]
        let code = Box<Int32>(99)
        let shutdown = try GracefulShutdown(options: options) { report in
          code.value = report.exitCode
          loop.stop()
        }
        try loop.add(shutdown, forMode: .default)
        raise(SIGTERM)
        loop.runUntilStopped()
        return code.value
      }
      #expect(end == .exited(0))
    }
  }

  @Test("a signal that is listed twice counts once")
  func listedTwice() throws {
    let log = onNewThread {
      let loop = RunLoop.current
      var options = GracefulShutdown.Options()
      // A signal that no other test sends.
      options.signals = [testSignal(15), testSignal(15)]
      options.deadline = .seconds(1000)
      let log = Log()
      do {
        let shutdown = try GracefulShutdown(options: options) { report in
          log.write("\(report.exitCode)")
          loop.stop()
        }
        let mayEnd = Notes<Bool>()
        shutdown.add("wait") { while mayEnd.count == 0 { await Task.yield() } }
        try loop.add(shutdown, forMode: .default)
        kill(getpid(), options.signals[0])
        while !shutdown.hasBegun { loop.run(mode: .default, for: .seconds(1)) }
        for _ in 0..<3 { loop.run(mode: .default, for: .zero) }
        mayEnd.add(true)
        loop.runUntilStopped()
      } catch {
        log.write("\(error)")
      }
      return log.text
    }
    #expect(log == "0")
  }

  @Test("a signal begins a shutdown, a second one cuts it short, and the report has the shell's exit code")
  func reportOnLoop() throws {
    let log = onNewThread {
      let log = Log()
      let loop = RunLoop.current
      do {
        var options = GracefulShutdown.Options()
        // A signal that no other test sends.
        options.signals = [__libc_current_sigrtmin() + 9]
        let shutdown = try GracefulShutdown(options: options) { report in
          log.write("\(report.cause) \(report.exitCode) \(RunLoop.current === loop)")
          loop.stop()
        }
        shutdown.add("wait") { try await untilCancelled() }
        try loop.add(shutdown, forMode: .default)
        kill(getpid(), options.signals[0])
        while !shutdown.hasBegun { loop.run(mode: .default, for: .seconds(1)) }
        kill(getpid(), options.signals[0])
        loop.runUntilStopped()
        log.write("\(loop.contains(shutdown, forMode: .default))")
      } catch {
        log.write("\(error)")
      }
      return log.text
    }
    let signal = __libc_current_sigrtmin() + 9
    #expect(log == "signal(\(signal)) \(128 + signal) true true")
  }

  #if DEBUG
    /// Adds a shutdown with two signals to a loop, the descriptor call with an index of which fails, if there is one;
    /// returns the number of such calls.
    private func add(_ call: SystemCall, failing index: Int?, to loop: RunLoop) throws -> Int {
      var options = GracefulShutdown.Options()
      options.signals = [SIGUSR1, SIGUSR2]
      let shutdown = try GracefulShutdown(options: options)
      let plan = FaultPlan()
      if let index {
        for _ in 0..<index { plan.plan(call, nil) }
        plan.plan(call, .fails(ENOMEM))
      }
      var failure: RunLoopError?
      plan.rule {
        do throws(RunLoopError) { try loop.add(shutdown, forMode: .default) } catch { failure = error }
      }
      #expect(plan.isUsedUp)
      #expect((failure == nil) == (index == nil))
      #expect(loop.contains(shutdown, forMode: .default) == (index == nil))
      #expect(loop.run(mode: .default, for: .zero) == (index == nil ? .timedOut : .finished))
      loop.remove(shutdown, forMode: .default)
      return plan.counts[call] ?? 0
    }

    @Test("a shutdown with a signal that cannot be watched is not in the loop")
    func signalRejected() {
      SourceRig.onThread { loop in
        do {
          let count = try self.add(.epollControl, failing: nil, to: loop)
          #expect(count >= 2)
          for index in 0..<2 { _ = try self.add(.epollControl, failing: index, to: loop) }
        } catch {
          Issue.record(error)
        }
      }
    }
  #endif

  @Test("the handler is called on the library's thread if its loop's thread ends before the report")
  func loopEndsFirst() async throws {
    let log = Log()
    let end = AsyncStream<Void>.makeStream()
    await elsewhere {
      onNewThread {
        do {
          var options = GracefulShutdown.Options()
          options.signals = []
          let shutdown = try GracefulShutdown(options: options) { report in
            log.write("\(report.exitCode) \(RunLoop.current === ServiceThread.loop)")
            end.continuation.finish()
          }
          try RunLoop.current.add(shutdown, forMode: .default)
          // There is no step: the loop has accepted the report when this returns, and never runs.
          shutdown.begin()
          if !log.text.isEmpty { log.write("too early") }
        } catch {
          log.write("\(error)")
          end.continuation.finish()
        }
      }
    }
    for await _ in end.stream {}
    #expect(log.text == "0 true")
  }
}
