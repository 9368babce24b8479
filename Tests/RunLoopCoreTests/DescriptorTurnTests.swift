// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Turns among descriptors", .timeLimit(.minutes(20)))
struct DescriptorTurnTests {
  @Test("a pass serves all descriptors that its wait has found", .rule(.r10, .m19))
  func batch() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record { _, loop, log in
      for pipe in pipes {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in
          log.write("D")
          pipe.read()
        }
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D D BT BS BW AW X timedOut")
  }

  @Test("a run that returns after a source serves one of them, and the next run the next", .rule(.r9, .m19))
  func oneInEachRun() throws {
    let pipes = [try RawPipe(), try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      for (name, pipe) in zip(["a", "b", "c"], pipes) {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in log.write(name) }
      }
      for _ in 0..<300 { loop.run(mode: .default, for: .seconds(1), returnAfterSourceHandled: true) }
    }
    #expect(["a", "b", "c"].map { name in log.split(separator: " ").count { $0 == name } } == [100, 100, 100])
  }

  @Test(
    "of more ready descriptors than one wait reports, runs that return after a source serve each equally often",
    .rule(.r9, .m19),
    arguments: [65, 96, 100, 128])
  func manyInRuns(count: Int) throws {
    let counters = try (0..<count).map { _ in try WakeDescriptor() }
    let services = onVirtualTime { _, loop in
      let services = Box([Int](repeating: 0, count: count))
      for (index, counter) in counters.enumerated() {
        counter.wake()
        loop.watch(counter.descriptor.number) { _, _ in services.value[index] += 1 }
      }
      for _ in 0..<10 * count { loop.run(mode: .default, for: .seconds(1), returnAfterSourceHandled: true) }
      return services.value
    }
    #expect(services == Array(repeating: 10, count: count))
  }

  @Test("a stop ends a batch, and the next run begins with the rest of it", .rule(.r39, .m19))
  func stopWithinBatch() throws {
    let pipes = [try RawPipe(), try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      for (name, pipe) in zip(["a", "b", "c"], pipes) {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in
          log.write(name)
          loop.stop()
        }
      }
      for _ in 0..<4 { loop.run(log) }
    }
    #expect(log == "a stopped b stopped c stopped a stopped")
  }

  @Test("a run nested in a batch ends the batch, and the next wait continues where it stopped", .rule(.r108, .m19))
  func nestedWithinBatch() throws {
    let pipes = [try RawPipe(), try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      for (name, pipe) in zip(["a", "b", "c"], pipes) {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in
          log.write(name)
          pipe.read()
          // The nested run serves what the outer run found.
          if name == "a" { loop.nest(log, for: .zero) }
        }
      }
      loop.run(log)
    }
    #expect(log == "a [ b c timedOut ] timedOut")
  }

  @Test(
    "a descriptor number that a handler reuses is not reported for an event of the closed descriptor",
    .rule(.r79, .m6, .m19))
  func numberUsedAgain() throws {
    let first = try RawPipe()
    let second = try RawPipe()
    let quiet = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      first.write()
      second.write()
      let copies = Box<[RunLoop.DescriptorSource]?>([])
      loop.watch(first.reading) { _, _ in
        log.write("a")
        first.read()
        // The descriptor number that the same wait found now refers to an idle file.
        copies.value?.first?.invalidate()
        dup2(quiet.reading, second.reading)
        loop.watch(second.reading) { _, _ in log.write("wrong") }
      }
      copies.value = [loop.watch(second.reading) { _, _ in log.write("b") }]
      loop.run(log)
      copies.value = nil
    }
    #expect(log == "a timedOut")
  }

  @Test("sources of one descriptor that wait for the same take turns", .rule(.r11, .r78, .m6, .m19))
  func sameEvents() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      for name in ["a", "b", "c"] { loop.watch(pipe.reading) { _, _ in log.write(name) } }
      for _ in 0..<6 { loop.run(mode: .default, for: .zero) }
    }
    #expect(["a b c a b c", "b c a b c a", "c a b c a b"].contains(log), "\(log)")
  }

  @Test("sources of one descriptor that wait for different things take turns", .rule(.r78, .m6, .m19))
  func differentEvents() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      socket.write()
      loop.watch(socket.reading, .readable) { _, events in log.write("R\(events)") }
      loop.watch(socket.reading, .writable) { _, events in log.write("W\(events)") }
      for _ in 0..<4 { loop.run(mode: .default, for: .zero) }
    }
    let turn = "R[readable] W[writable] R[readable] W[writable]"
    #expect([turn, "W[writable] R[readable] W[writable] R[readable]"].contains(log), "\(log)")
  }

  @Test("a source that leaves its descriptor leaves the others there", .rule(.r78, .m6))
  func oneLeaves() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      let sources = ["a", "b"].map { name in loop.watch(pipe.reading) { _, _ in log.write(name) } }
      loop.remove(sources[0], forMode: .default)
      for _ in 0..<2 { loop.run(mode: .default, for: .zero) }
      log.write("\(loop.contains(sources[0], forMode: .default)) \(loop.contains(sources[1], forMode: .default))")
    }
    #expect(log == "b b false true")
  }

  @Test("of more ready descriptors than one wait reports, each is served before any is served again", .rule(.r11, .m19))
  func many() throws {
    let counters = try (0..<70).map { _ in try WakeDescriptor() }
    let log = onVirtualTime { _, loop in
      let log = Log()
      for (index, counter) in counters.enumerated() {
        counter.wake()
        loop.watch(counter.descriptor.number) { _, _ in log.write("\(index)") }
      }
      for _ in counters { loop.run(mode: .default, for: .zero) }
      return log.text
    }
    #expect(Set(log.split(separator: " ")).count == 70)
  }

  @Test(
    "descriptors that are always ready take turns from run to run too", .rule(.r9, .r11, .m19),
    arguments: [false, true])
  func acrossRuns(returnsAfterSource: Bool) throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      for (name, pipe) in zip(["a", "b"], pipes) {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in log.write(name) }
      }
      for _ in 0..<4 {
        let timeout: Duration = returnsAfterSource ? .seconds(1) : .zero
        loop.run(mode: .default, for: timeout, returnAfterSourceHandled: returnsAfterSource)
      }
    }
    // Runs that do not return after a source serve both.
    #expect(log == (returnsAfterSource ? "a b a b" : "a b a b a b a b"))
  }

  @Test("timers that are always due, an always ready descriptor and a port take turns", .rule(.r11, .m19))
  func classes() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { time, loop, log in
      pipe.write()
      loop.add(
        RunLoop.Observer(activities: .beforeTimers) { _, _ in time.advance(by: .milliseconds(1)) }, forMode: .default)
      loop.every(.milliseconds(1)) { _ in log.write("T") }
      loop.watch(pipe.reading) { _, _ in log.write("D") }
      loop.endlessPort {
        log.write("P")
        if log.count(of: "P") == 3 { loop.stop() }
      }
      loop.run(log)
    }
    #expect(log == "T D P T D P T D P stopped")
  }

  @Test("timers that are always due do not starve a descriptor", .rule(.r11, .m19))
  func timers() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { time, loop, log in
      pipe.write()
      loop.add(
        RunLoop.Observer(activities: .beforeTimers) { _, _ in time.advance(by: .milliseconds(1)) }, forMode: .default)
      loop.every(.milliseconds(1)) { _ in
        log.write("T")
        if log.count(of: "T") == 3 { loop.stop() }
      }
      loop.watch(pipe.reading) { _, _ in log.write("D") }
      loop.run(log)
    }
    #expect(log == "T D T D T stopped")
  }

  @Test("a port that always has a message does not starve a descriptor", .rule(.r11, .m19))
  func ports() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      loop.watch(pipe.reading) { _, _ in log.write("D") }
      loop.endlessPort {
        log.write("P")
        if log.count(of: "P") == 3 { loop.stop() }
      }
      loop.run(log)
    }
    #expect(log == "D P D P D P stopped")
  }

  @Test("a source that signals itself repeatedly does not starve a descriptor", .rule(.r2, .r3))
  func signals() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      let again = Box<RunLoop.Source?>(nil)
      again.value = loop.signalled {
        log.write("S0")
        again.value?.signal()
      }
      loop.watch(pipe.reading) { _, _ in
        log.write("D")
        if log.count(of: "D") == 3 { loop.stop() }
      }
      loop.run(log)
      again.value = nil
    }
    #expect(log == "S0 D S0 D S0 D stopped")
  }

  @Test("a block that posts itself repeatedly does not starve a descriptor", .rule(.r2, .m1))
  func blocks() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      @Sendable func post() {
        loop.perform {
          log.write("B")
          post()
        }
      }
      post()
      loop.watch(pipe.reading) { _, _ in
        log.write("D")
        if log.count(of: "D") == 2 { loop.stop() }
      }
      loop.run(log)
    }
    #expect(log == "B D B B D B stopped")
  }

  @Test("a wake-up does not cost a ready descriptor its turn", .rule(.r48, .m19))
  func wakeUps() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      pipe.write()
      loop.once(.beforeSources) { loop.wakeUp() }
      loop.watch(pipe.reading) { _, _ in
        log.write("D")
        pipe.read()
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D BT BS BW AW X timedOut")
  }
}
