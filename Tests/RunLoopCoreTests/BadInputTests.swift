// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Bad input: durations", .timeLimit(.minutes(20)))
struct BadDurationTests {
  @Test(
    "the most negative times are one pass without a wait", .rule(.r12),
    arguments: [Duration.seconds(Int64.min), Duration(secondsComponent: 0, attosecondsComponent: -1)])
  func negativeDuration(timeout: Duration) {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.run(log, for: timeout)
    }
    #expect(log == "E BT BS X timedOut")
  }

  @Test(
    "extreme negative seconds mean one pass without a wait", .rule(.r12),
    arguments: [-Double.greatestFiniteMagnitude, -Double.leastNonzeroMagnitude, -0.0])
  func negativeSeconds(seconds: Double) {
    let log = record { _, loop, log in
      loop.keepAlive()
      log.write("\(loop.run(mode: .default, for: seconds))")
    }
    #expect(log == "E BT BS X timedOut")
  }

  @Test(
    "a NaN is an infinite time, whatever its sign and kind", .rule(.r13),
    arguments: [-Double.nan, .signalingNaN])
  func notANumber(seconds: Double) {
    let log = record(observing: nil) { time, loop, log in
      loop.keepAlive()
      time.at(.seconds(2_000_000_000)) { loop.stop() }
      log.write("\(loop.run(mode: .default, for: seconds))")
    }
    #expect(log == "stopped")
  }

  @Test("a timer with the longest interval fires at its date, and not again", .rule(.r95, .m12))
  func longestInterval() {
    let log = record(observing: nil) { time, loop, log in
      loop.add(Timer(at: 5, every: .seconds(Int64.max)) { _ in time.stamp(log, "T") }, forMode: .default)
      loop.run(log, for: .seconds(500_000_000))
    }
    #expect(log == "T5 timedOut")
  }

  @Test("a timer with the most negative interval fires once", .rule(.r95, .m12))
  func mostNegativeInterval() {
    let log = record(observing: nil) { time, loop, log in
      loop.add(Timer(at: 5, every: .seconds(Int64.min)) { _ in time.stamp(log, "T") }, forMode: .default)
      loop.run(log)
    }
    #expect(log == "T5 finished")
  }

  @Test(
    "in Foundation's spelling the most negative intervals mean 0.0001 seconds, the least positive a microsecond",
    .rule(.m12),
    arguments: [
      (-Double.infinity, 0.0001), (-.greatestFiniteMagnitude, 0.0001), (-0.0, 0.0001), (.leastNonzeroMagnitude, 1e-6),
    ])
  func foundationInterval(seconds: Double, interval: Double) {
    #expect(Timer(timeInterval: seconds, repeats: true) { _ in }.timeInterval == interval)
  }

  @Test("in Foundation's spelling the longest interval never ends", .rule(.m12))
  func foundationLongest() {
    let log = record(observing: nil) { _, loop, log in
      for seconds in [Double.greatestFiniteMagnitude, 1e11] {
        loop.add(Timer(timeInterval: seconds, repeats: true) { _ in log.write("T") }, forMode: .default)
      }
      loop.run(log, for: .seconds(500_000_000))
    }
    #expect(log == "timedOut")
  }

  @Test("a scheduled timer with a NaN interval is a programming error, as the message says", .rule(.m12))
  func scheduledNotANumber() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Timer.scheduledTimer(withTimeInterval: .nan, repeats: true) { _ in }
    }
    #if DEBUG
      let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
      #expect(message.contains("a timer's interval of nan seconds is not a number"))
    #endif
  }

  @Test("the most distant past date is due at once, and its phase starts now", .rule(.r93, .r95))
  func distantPast() {
    let log = record(observing: nil) { time, loop, log in
      let past = Tick.distantPast.instant
      let timer = Timer(deadline: past, interval: .milliseconds(10)) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      log.write("\(timer.deadline == past)")
      loop.run(log, for: .milliseconds(25))
    }
    #expect(log == "true T0 T10 T20 timedOut")
  }

  @Test(
    "with an infinite tolerance, a timer waits for any other wake-up of the loop", .rule(.r99f, .m8),
    arguments: [1e300, .infinity])
  func endlessTolerance(seconds: Double) {
    let log = record(observing: nil) { time, loop, log in
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      timer.tolerance = seconds
      loop.keepAlive()
      time.at(.seconds(30)) { loop.wakeUp() }
      loop.run(log, for: .seconds(60))
    }
    #expect(log == "T30000 timedOut")
  }

  @Test(
    "a tolerance as negative as can be is none", .rule(.r99f, .m8),
    arguments: [-Double.infinity, -.greatestFiniteMagnitude])
  func negativeTolerance(seconds: Double) {
    let log = record(observing: nil) { time, loop, log in
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      timer.tolerance = seconds
      loop.run(log, for: .seconds(60))
    }
    #expect(log == "T10 finished")
  }
}

@Suite("Bad input: modes, loops and threads", .timeLimit(.minutes(20)))
struct BadPlaceTests {
  @Test("a mode may have any name, also none, and a run of its near namesake is finished", .rule(.r20, .r24))
  func names() {
    let log = record(observing: nil) { _, loop, log in
      loop.signalled(mode: "") { log.write("S0") }
      loop.run(log, mode: " ", for: .zero)
      loop.run(log, mode: "", for: .zero)
      loop.run(log, mode: "kcfrunloopdefaultmode", for: .zero)
    }
    #expect(log == "finished S0 timedOut finished")
  }

  @Test(
    "queries of an unknown mode, or of the common pseudo-mode as if it were a mode, return nothing",
    .rule(.r32, .r100))
  func asked() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in }
      for mode in [RunLoop.Mode("a"), .common] {
        loop.remove(source, forMode: mode)
        log.write("\(loop.contains(source, forMode: mode)) \(loop.nextDeadline(forMode: mode) == nil)")
        loop.run(log, mode: mode, for: .zero)
      }
      loop.after(.milliseconds(5), mode: .common) { _ in }
      log.write("\(loop.nextDeadline(forMode: .common) == nil) \(loop.modes == [.default])")
    }
    #expect(log == "false true finished false true finished true true")
  }

  @Test("a descriptor source that is invalid is rejected by its error, and counted", .rule(.r74, .r81, .m21))
  func invalidSource() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in }
      source.invalidate()
      for mode in [RunLoop.Mode.default, .common] {
        let error = failure { () throws(RunLoopError) in try loop.add(source, forMode: mode) }
        log.write("\(error == .invalidSource) \(loop.contains(source, forMode: mode))")
      }
      log.write("\(loop.statistics.rejectionCount) \(loop.pollSet() == nil)")
    }
    #expect(log == "true false true false 2 true")
  }

  @Test("a loop whose thread has ended rejects a descriptor source by its error, and counts it", .rule(.r117, .m21))
  func endedLoop() throws {
    let pipe = try RawPipe()
    let loop = onVirtualTime { _, loop in loop }
    let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in }
    for mode in [RunLoop.Mode.default, .common, "a"] {
      #expect(throws: RunLoopError.loopHasEnded) { try loop.add(source, forMode: mode) }
      #expect(!loop.contains(source, forMode: mode))
    }
    #expect(loop.statistics.rejectionCount == 3)
    #expect(loop.pollSet() == nil)
    // The descriptor can be added to another loop.
    let isTaken = onVirtualTime { _, other in
      failure { () throws(RunLoopError) in try other.add(source, forMode: .default) } == nil
    }
    #expect(isTaken)
  }

  @Test(
    "each error describes its cause", .rule(.m7, .m11, .m21),
    arguments: [
      (RunLoopError.loopHasEnded, "the thread of the run loop has ended"),
      (.notAMode(.common), "\"kCFRunLoopCommonModes\" stands for the common modes and is not a mode itself"),
      (.invalidSource, "the source has been invalidated"),
      (.wrongThread(loop: "thread 7", caller: "thread 8"), "the run loop of thread 7 was called by thread 8"),
      (
        .cannotServeMainQueue("a", SystemError(call: "epoll_create1", number: EMFILE)),
        "the main dispatch queue cannot be served in the mode \"a\": epoll_create1: Too many open files (24)"
      ),
    ])
  func descriptions(error: RunLoopError, text: String) {
    #expect("\(error)" == text)
  }

  @Test("a run of the main loop by another thread fails with the names of both", .rule(.r18, .m15))
  func mainLoop() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      onNewThread {
        if let file = fopen("/proc/thread-self/comm", "w") {
          fputs("not main", file)
          fclose(file)
        }
        _ = RunLoop.main.runUntilStopped()
      }
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    let line = try #require(message.split(separator: "\n").first { $0.contains("cannot be run by thread") })
    #expect(line.contains("\"not main\""))
    #expect(line.split(separator: "\"").count >= 4)
  }

  @Test("a loop cannot be run by another thread while its own runs it", .rule(.r18, .m15))
  func runningLoop() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let running = RunningLoop { loop, _ in loop.keepAlive() }
      running.loop.awaitSleep(.futex)
      running.loop.run(mode: .default, for: Duration.zero)
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("cannot be run by thread"))
  }
}
