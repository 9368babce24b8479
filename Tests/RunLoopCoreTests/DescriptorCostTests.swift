// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The costs of watching descriptors", .timeLimit(.minutes(20)))
struct DescriptorCostTests {
  @Test(
    "the last source of a mode releases its epoll set; the loop keeps its counter as long as it lives",
    .rule(.r114, .m7))
  func givesBack() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      func state(_ set: WeakBox<PollSet>, _ counter: WeakBox<WakeDescriptor>) -> String {
        "\(set.object == nil) \(counter.object == nil) \(loop.pollSet() == nil) \(loop.pollSet("a") == nil)"
      }
      func boxes() -> (WeakBox<PollSet>, WeakBox<WakeDescriptor>)? {
        loop.pollSet().map { (WeakBox($0), WeakBox($0.wakeDescriptor)) }
      }
      let sources = [RunLoop.Mode.default, .default, "a"].map { loop.watch(pipe.reading, mode: $0) }
      guard let (set, counter) = boxes() else { return log.write("no set") }
      sources[0].invalidate()
      log.write(state(set, counter) + ",")
      loop.remove(sources[1], forMode: .default)
      log.write(state(set, counter) + ",")
      sources[2].invalidate()
      log.write(state(set, counter))
    }
    #expect(log == "false false false false, true false true false, true false true true")
  }

  @Test("a loop whose last source leaves while it sleeps releases the set when it is awake", .rule(.r114, .m7))
  func givesBackAsleep() throws {
    let pipe = try RawPipe()
    let log = record { time, loop, log in
      let source = loop.watch(pipe.reading)
      let box = loop.pollSet().map { WeakBox($0) }
      time.at(.milliseconds(10)) { source.invalidate() }
      loop.run(log)
      log.write("\(box?.object == nil)")
    }
    #expect(log == "E BT BS BW AW X timedOut true")
  }

  @Test("the end of its thread releases what a loop watched with", .rule(.r114, .r115))
  func threadEnds() throws {
    let pipe = try RawPipe()
    let box = onVirtualTime { _, loop in
      loop.watch(pipe.reading, mode: .common)
      return loop.pollSet().map { WeakBox($0) }
    }
    #expect(try #require(box).object == nil)
  }

  @Test("100 idle loops own no descriptor, one that watches in one mode two, in three modes four", .rule(.r114, .m7))
  func count() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      // One set per mode, and one counter for all of them.
      func sets(_ count: Int) -> [String: Int] { ["anon_inode:[eventpoll]": count, "anon_inode:[eventfd]": 1] }
      let base = DescriptorCensus()
      let idle = (0..<100).map { _ in RunningLoop { loop, _ in loop.keepAlive() } }
      for running in idle { running.loop.awaitSleep(.futex) }
      #expect(base.isFollowed(by: DescriptorCensus()))
      for running in idle { running.loop.stop() }
      #expect(idle.allSatisfy { $0.result() == "stopped" })

      let watched = Box<RunLoop.DescriptorSource?>(nil)
      let watching = RunningLoop { loop, _ in watched.value = loop.watch(pipe.reading) }
      watching.loop.awaitSleep(.epoll)
      #expect(base.isFollowed(by: DescriptorCensus(), with: sets(1)))
      for mode in ["a", "b"] { try watched.value.map { try watching.loop.add($0, forMode: RunLoop.Mode(mode)) } }
      #expect(base.isFollowed(by: DescriptorCensus(), with: sets(3)))
      watched.value?.invalidate()
      watching.loop.stop()
      #expect(watching.result() == "stopped")
      withExtendedLifetime(watching) {
        #expect(base.isFollowed(by: DescriptorCensus(), with: ["anon_inode:[eventfd]": 1]))
      }
    }
  }

  @Test("1000 loops that have watched leave no descriptor behind", .rule(.r114, .r115))
  func many() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      pipe.write()
      let base = DescriptorCensus()
      for _ in 0..<1000 {
        onNewThread {
          let loop = RunLoop.current
          loop.watch(pipe.reading, mode: .common)
          loop.run(mode: .default, for: Duration.zero)
        }
      }
      #expect(base.isFollowed(by: DescriptorCensus()))
    }
  }
}
