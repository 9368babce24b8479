// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The common modes", .timeLimit(.minutes(20)))
struct CommonModeTests {
  /// The modes among a, b, default and common that contain a source.
  private func places(_ source: RunLoop.Source, in loop: RunLoop) -> String {
    let names: [(String, RunLoop.Mode)] = [("a", "a"), ("b", "b"), ("d", .default), ("c", .common)]
    return names.filter { loop.contains(source, forMode: $0.1) }.map(\.0).joined()
  }

  @Test("the common pseudo-mode is known by its name", .rule(.r100, .m11))
  func byName() {
    let log = record(observing: nil) { _, loop, log in
      let common = RunLoop.Mode(["kCFRunLoop", "CommonModes"].joined())
      let source = RunLoop.Source {}
      loop.add(source, forMode: common)
      log.write(places(source, in: loop))
      loop.remove(source, forMode: common)
      log.write("none:\(places(source, in: loop))")
    }
    #expect(log == "dc none:")
  }

  @Test("a common item is in every common mode", .rule(.r101))
  func added() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = RunLoop.Source {}
      loop.add(source, forMode: .common)
      log.write(places(source, in: loop))
    }
    #expect(log == "adc")
  }

  @Test("a common item is served in every common mode", .rule(.r101))
  func served() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = loop.signalled(mode: .common) { log.write("S0") }
      loop.every(.milliseconds(10), mode: .common) { _ in log.write("T") }
      loop.observe(log, mode: .common, .entry)
      loop.run(log, mode: "a", for: .milliseconds(10))
      source.signal()
      loop.run(log, for: .milliseconds(10))
    }
    #expect(log == "E S0 T timedOut E S0 T timedOut")
  }

  @Test("the common items enter a mode that becomes common, in their order", .rule(.r102, .m31))
  func commonLater() {
    let log = record(observing: nil) { _, loop, log in
      for name in ["1", "2", "3"] {
        loop.add(RunLoop.Observer(activities: .entry) { _, _ in log.write(name) }, forMode: .common)
      }
      loop.keepAlive("a")
      try? loop.addCommonMode("a")
      loop.run(mode: "a", for: .zero)
    }
    #expect(log == "1 2 3")
  }

  @Test("a mode that is common already is not filled again", .rule(.r102, .r103))
  func commonTwice() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = RunLoop.Source {}
      loop.add(source, forMode: .common)
      loop.remove(source, forMode: "a")
      try? loop.addCommonMode("a")
      log.write(places(source, in: loop))
    }
    #expect(log == "dc")
  }

  @Test("an item that leaves one common mode stays common, and comes back in later ones", .rule(.r103))
  func leavesOne() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source {}
      loop.add(source, forMode: .common)
      loop.remove(source, forMode: .default)
      log.write(places(source, in: loop))
      try? loop.addCommonMode("a")
      log.write(places(source, in: loop))
    }
    #expect(log == "c ac")
  }

  @Test("an item that is added to the common modes again enters all of them", .rule(.r101, .r103))
  func addedAgain() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = RunLoop.Source {}
      loop.add(source, forMode: .common)
      loop.remove(source, forMode: "a")
      loop.add(source, forMode: .common)
      log.write(places(source, in: loop))
    }
    #expect(log == "adc")
  }

  @Test(
    "a common item that is removed leaves every common mode, also where it was added by name, and no other",
    .rule(.r104))
  func removed() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = RunLoop.Source {}
      for mode: RunLoop.Mode in ["a", "b", .common] { loop.add(source, forMode: mode) }
      log.write(places(source, in: loop))
      loop.remove(source, forMode: .common)
      log.write(places(source, in: loop))
    }
    #expect(log == "abdc b")
  }

  @Test("removing an item that is not common from the common modes does nothing", .rule(.r104))
  func notCommon() {
    let log = record(observing: nil) { _, loop, log in
      let source = loop.keepAlive()
      loop.remove(source, forMode: .common)
      log.write(places(source, in: loop))
    }
    #expect(log == "d")
  }

  @Test("an item that was invalidated or has fired for the last time is no longer common", .rule(.r105))
  func invalidated() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source {}
      let observer = RunLoop.Observer(activities: .entry, repeats: false) { _, _ in }
      loop.add(source, forMode: .common)
      loop.add(observer, forMode: .common)
      let timer = loop.after(.milliseconds(1), mode: .common) { _ in source.invalidate() }
      let write = {
        for mode in [RunLoop.Mode.default, .common] {
          log.write(loop.contains(source, forMode: mode) ? "S0" : "-")
          log.write(loop.contains(observer, forMode: mode) ? "O" : "-")
          log.write(loop.contains(timer, forMode: mode) ? "T" : "-")
        }
      }
      write()
      loop.run(log)
      write()
    }
    #expect(log == "S0 O T S0 O T finished - - - - - -")
  }

  @Test("an item that has left all modes one by one is released when it is invalidated", .rule(.r106, .m9))
  func noLeak() {
    let log = record(observing: nil) { _, loop, log in
      let observer = holdingObserver(log)
      let timer = loop.every(.seconds(1), mode: .common, holding(log))
      loop.add(observer, forMode: .common)
      loop.remove(observer, forMode: .default)
      loop.remove(timer, forMode: .default)
      log.write("\(loop.contains(observer, forMode: .common)) \(loop.contains(timer, forMode: .common))")
      observer.invalidate()
      timer.invalidate()
      log.write("\(loop.contains(observer, forMode: .common)) \(loop.contains(timer, forMode: .common))")
      log.write("\(loop.table.withLock { $0.commonItems.count })")
    }
    #expect(log == "false false observer timer false false 0")
  }

  private func holdingObserver(_ log: Log) -> RunLoop.Observer {
    let probe = Token(log, "observer")
    return RunLoop.Observer(activities: .all) { _, _ in probe.touch() }
  }

  private func holding(_ log: Log) -> @Sendable (Timer) -> Void {
    let probe = Token(log, "timer")
    return { _ in probe.touch() }
  }

  @Test(
    "the common pseudo-mode cannot be made common", .rule(.r107, .m9, .m11),
    arguments: [RunLoop.Mode.common, "kCFRunLoopCommonModes"])
  func pseudoMode(mode: RunLoop.Mode) {
    let log = record(observing: nil) { _, loop, log in
      do throws(RunLoopError) { try loop.addCommonMode(mode) } catch { log.write("\(error == .notAMode(.common))") }
      loop.signalled(mode: .common) { log.write("S0") }
      loop.run(log, for: .zero)
    }
    #expect(log == "true S0 timedOut")
  }

  @Test("the common items are served by a loop that sleeps in the mode that becomes common", .rule(.r102, .r50))
  func whileAsleep() {
    let log = record(observing: nil) { time, loop, log in
      loop.keepAlive("a")
      loop.after(.milliseconds(10), mode: .common) { _ in log.write("T \(time.milliseconds)") }
      time.at(.milliseconds(5)) { try? loop.addCommonMode("a") }
      loop.run(log, mode: "a")
    }
    #expect(log == "T 10 timedOut")
  }
}
