// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// The actions of another thread while the loop sleeps: `B` performs a block, `J` enqueues a job, `H` hands off work,
/// `S` signals a source and wakes the loop, `P` sends a message to a port, `D` writes to a pipe, `W` only wakes the
/// loop, and `T` adds a due timer.
@Suite("Work handed over by one thread begins in the order of posting")
struct HandOverOrderTests {
  /// Logs a run that sleeps for a second before another thread acts.
  private func trace(of actions: String, returnAfterSourceHandled: Bool = false, isWatching: Bool = true) -> String {
    record { time, loop, log in
      guard let scene = try? Scene(loop, log, isWatching: isWatching) else { return log.write("no pipe") }
      time.at(.seconds(1)) { scene.perform(actions) }
      loop.run(log, for: .seconds(2), returnAfterSourceHandled: returnAfterSourceHandled)
      scene.end()
    }
  }

  @Test(
    "a block or a job comes before what became ready after it, in the same pass", .rule(.m1, .m19),
    arguments: [
      ("BP", "E BT BS BW AW B P BT BS BW AW X timedOut"),
      ("BD", "E BT BS BW AW B D BT BS BW AW X timedOut"),
      ("BT", "E BT BS BW AW B T BT BS BW AW X timedOut"),
      ("JP", "E BT BS BW AW J P BT BS BW AW X timedOut"),
      ("JD", "E BT BS BW AW J D BT BS BW AW X timedOut"),
      ("BBD", "E BT BS BW AW B B D BT BS BW AW X timedOut"),
      ("BJP", "E BT BS BW AW B J P BT BS BW AW X timedOut"),
    ])
  func blockFirst(actions: String, expected: String) {
    #expect(trace(of: actions) == expected)
  }

  @Test(
    "a source or a hand-off comes before what became ready after it, which waits for the next pass", .rule(.m19, .m34),
    arguments: [
      ("SP", "E BT BS BW AW BT BS S P BT BS BW AW X timedOut"),
      ("SD", "E BT BS BW AW BT BS S D BT BS BW AW X timedOut"),
      ("ST", "E BT BS BW AW BT BS S T BT BS BW AW X timedOut"),
      ("HP", "E BT BS BW AW BT BS H P BT BS BW AW X timedOut"),
      ("HD", "E BT BS BW AW BT BS H D BT BS BW AW X timedOut"),
      ("HT", "E BT BS BW AW BT BS H T BT BS BW AW X timedOut"),
    ])
  func sourceFirst(actions: String, expected: String) {
    #expect(trace(of: actions) == expected)
  }

  @Test(
    "an event comes before what was posted after it", .rule(.m1, .m19, .m34),
    arguments: [
      ("PB", "E BT BS BW AW P B BT BS BW AW X timedOut"),
      ("DB", "E BT BS BW AW D B BT BS BW AW X timedOut"),
      ("DJ", "E BT BS BW AW D J BT BS BW AW X timedOut"),
      ("PS", "E BT BS BW AW P BT BS S BW AW X timedOut"),
      ("DS", "E BT BS BW AW D BT BS S BW AW X timedOut"),
      ("PH", "E BT BS BW AW P BT BS H BW AW X timedOut"),
      ("DH", "E BT BS BW AW D BT BS H BW AW X timedOut"),
    ])
  func eventFirst(actions: String, expected: String) {
    // The pass after a handled source does not wait.
    let expected = expected.replacing(" S BW AW", with: " S BT BS BW AW").replacing(" H BW AW", with: " H BT BS BW AW")
    #expect(trace(of: actions) == expected)
  }

  @Test(
    "a run that returns after a source makes one more round of observers for what has woken it", .rule(.m19),
    arguments: [
      ("SP", "E BT BS BW AW BT BS S P X handledSource"), ("SD", "E BT BS BW AW BT BS S D X handledSource"),
      ("HP", "E BT BS BW AW BT BS H P X handledSource"), ("HD", "E BT BS BW AW BT BS H D X handledSource"),
      ("BP", "E BT BS BW AW B P X handledSource"), ("BD", "E BT BS BW AW B D X handledSource"),
      ("DS", "E BT BS BW AW D X handledSource"), ("PH", "E BT BS BW AW P X handledSource"),
    ])
  func returningAfterSource(actions: String, expected: String) {
    #expect(trace(of: actions, returnAfterSourceHandled: true) == expected)
  }

  @Test("the same for a loop that watches no descriptor", .rule(.m19), arguments: ["BP", "SP", "HP", "BT", "PB", "PH"])
  func withoutSet(actions: String) {
    #expect(trace(of: actions, isWatching: false) == trace(of: actions))
  }

  @Test("a bare wake-up, and a post for another mode, do not change the order", .rule(.m19))
  func unknownCause() {
    #expect(trace(of: "WD") == "E BT BS BW AW D BT BS BW AW X timedOut")
    #expect(trace(of: "WP") == "E BT BS BW AW P BT BS BW AW X timedOut")
    let elsewhere = record { time, loop, log in
      let port = loop.port(messages: 0) { log.write("P") }
      time.at(.seconds(1)) {
        loop.perform(inModes: ["other"]) { log.write("never") }
        try? port.send(Port.Message())
        loop.perform { log.write("B") }
      }
      loop.run(log, for: .seconds(2))
    }
    #expect(elsewhere == "E BT BS BW AW P B BT BS BW AW X timedOut")
  }

  @Test(
    "serving is delayed once for a signal that was withdrawn by its turn, but not again in the next pass",
    .rule(.m19))
  func neverTwice() {
    let log = record { time, loop, log in
      let port = loop.port(messages: 0) { log.write("P") }
      let source = RunLoop.Source { log.write("S") }
      loop.add(source, forMode: .default)
      // Consumes the signal, like another loop with the same source.
      loop.once(.beforeSources) {
        loop.once(.beforeSources) { if source.claimSignal() { source.letGo() } }
      }
      time.at(.seconds(1)) {
        source.signal()
        loop.wakeUp()
      }
      time.at(.milliseconds(1500)) {
        source.signal()
        loop.wakeUp()
        try? port.send(Port.Message())
      }
      loop.run(log, for: .seconds(2))
    }
    #expect(log == "E BT BS BW AW BT BS BW AW P BT BS S BT BS BW AW X timedOut")
  }

  @Test("the cause of an outer run's wake-up is discarded when its observer runs the loop", .rule(.m19))
  func nestedInObserver() {
    let log = record { time, loop, log in
      guard let scene = try? Scene(loop, log, isWatching: true) else { return log.write("no pipe") }
      loop.once(.afterWaiting) { loop.nest(log) }
      time.at(.seconds(1)) { scene.perform("HD") }
      loop.run(log, for: .seconds(2))
      scene.end()
    }
    #expect(log == "E BT BS BW AW [ E BT BS H D X timedOut ] BT BS BW AW X timedOut")
  }
}

/// A loop with one item of each kind, which another thread makes ready.
private final class Scene: @unchecked Sendable {
  // Sendable: the mutable state is used only by the loop's thread.
  private let loop: RunLoop
  private let log: Log
  private let source: RunLoop.Source
  private let port: Port
  private let pipe = try? RawPipe()
  private var watched: RunLoop.DescriptorSource?

  init(_ loop: RunLoop, _ log: Log, isWatching: Bool) throws {
    self.loop = loop
    self.log = log
    source = RunLoop.Source { log.write("S") }
    loop.add(source, forMode: .default)
    port = loop.port(messages: 0) { log.write("P") }
    guard isWatching, let pipe else { return }
    let watched = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
      pipe.read()
      log.write("D")
    }
    try loop.add(watched, forMode: .default)
    self.watched = watched
  }

  func perform(_ actions: String) {
    for action in actions {
      switch action {
      case "B": loop.perform { [log] in log.write("B") }
      case "J": Task(executorPreference: LoopExecutor(loop)) { [log] in log.write("J") }
      case "H": _ = loop.handOff(inModes: [.default]) { [log] in log.write("H") }
      case "S":
        source.signal()
        loop.wakeUp()
      case "P": try? port.send(Port.Message())
      case "D": pipe?.write()
      case "T": loop.after(.zero) { [log] _ in log.write("T") }
      default: loop.wakeUp()
      }
    }
  }

  func end() {
    watched?.invalidate()
    source.invalidate()
    port.invalidate()
  }
}
