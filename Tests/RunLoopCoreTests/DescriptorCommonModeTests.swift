// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Descriptor sources in the common modes", .timeLimit(.minutes(20)))
struct DescriptorCommonModeTests {
  /// The modes among a, b, default and common that contain a source.
  private func places(_ source: RunLoop.DescriptorSource, in loop: RunLoop) -> String {
    let names: [(String, RunLoop.Mode)] = [("a", "a"), ("b", "b"), ("d", .default), ("c", .common)]
    return names.filter { loop.contains(source, forMode: $0.1) }.map(\.0).joined()
  }

  private func makeCommon(_ mode: RunLoop.Mode, in loop: RunLoop) {
    do { try loop.addCommonMode(mode) } catch { Issue.record("\(error)") }
  }

  @Test("a common source is in every common mode, and served in each", .rule(.r101))
  func early() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      makeCommon("a", in: loop)
      let source = loop.watch(pipe.reading, mode: .common) { _, _ in log.write("D") }
      log.write(places(source, in: loop))
      loop.run(log, for: .zero)
      loop.run(log, mode: "a", for: .zero)
      loop.run(log, mode: "b", for: .zero)
    }
    #expect(log == "adc D timedOut D timedOut finished")
  }

  @Test("a common source enters a mode that becomes common", .rule(.r102))
  func late() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      let source = loop.watch(pipe.reading, mode: .common) { _, _ in log.write("D") }
      log.write(places(source, in: loop))
      makeCommon("a", in: loop)
      makeCommon("a", in: loop)
      log.write(places(source, in: loop))
      loop.run(log, mode: "a", for: .zero)
    }
    #expect(log == "dc adc D timedOut")
  }

  @Test("a loop that sleeps in the mode that becomes common serves the common source", .rule(.r102))
  func whileAsleep() throws {
    let pipe = try RawPipe()
    let log = record(observing: "a") { time, loop, log in
      pipe.write()
      loop.keepAlive("a")
      loop.watch(pipe.reading, mode: .common) { _, _ in
        time.stamp(log, "D")
        loop.stop()
      }
      time.at(.milliseconds(20)) { makeCommon("a", in: loop) }
      loop.run(log, mode: "a")
    }
    #expect(log == "E BT BS BW AW D20 X stopped")
  }

  @Test("a source that leaves one common mode stays common, and comes back in later ones", .rule(.r103))
  func leavesOne() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      let source = loop.watch(pipe.reading, mode: .common)
      loop.remove(source, forMode: .default)
      log.write(places(source, in: loop))
      makeCommon("a", in: loop)
      log.write(places(source, in: loop))
    }
    #expect(log == "c ac")
  }

  @Test("a common source that is removed leaves every common mode and no other", .rule(.r104))
  func removed() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      makeCommon("a", in: loop)
      let source = loop.watch(pipe.reading, mode: "b")
      loop.remove(source, forMode: .common)
      log.write(places(source, in: loop))
      do { try loop.add(source, forMode: .common) } catch { log.write("\(error)") }
      log.write(places(source, in: loop))
      loop.remove(source, forMode: .common)
      log.write(places(source, in: loop))
    }
    #expect(log == "b abdc b")
  }

  @Test("an invalidated source leaves all modes and is no longer common", .rule(.r105, .m9))
  func invalidated() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      let source = loop.watch(pipe.reading, mode: .common)
      loop.remove(source, forMode: .default)
      source.invalidate()
      log.write("none:\(places(source, in: loop))")
      makeCommon("a", in: loop)
      log.write("none:\(places(source, in: loop))")
    }
    #expect(log == "none: none:")
  }
}
