// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Loops that sleep in an epoll set", .timeLimit(.minutes(20)))
struct DescriptorWakeTests {
  /// An action on a sleeping loop, and its effect.
  enum Waking: CaseIterable, Sendable {
    case perform, wakeUp, stop, stopOfMode, signalAndWakeUp, timer, message, descriptor

    var log: String {
      switch self {
      case .perform: "E BT BS BW AW B X stopped"
      case .wakeUp: "E BT BS BW AW BT BS BW AW X stopped"
      case .stop, .stopOfMode: "E BT BS BW AW X stopped"
      case .signalAndWakeUp: "E BT BS BW AW BT BS S0 X stopped"
      case .timer: "E BT BS BW AW T X stopped"
      case .message: "E BT BS BW AW P X stopped"
      case .descriptor: "E BT BS BW AW D X stopped"
      }
    }
  }

  @Test(
    "every kind of wake-up ends a wait in an epoll set", .rule(.r45, .r50, .m2, .m3, .m6), arguments: Waking.allCases)
  func wakes(waking: Waking) throws {
    let idle = try RawPipe()
    let ready = try RawPipe()
    ready.write()
    let watched = Box<RunLoop.DescriptorSource?>(nil)
    let running = RunningLoop { loop, log in
      loop.observe(log)
      watched.value = loop.watch(idle.reading)
    }
    let (loop, log) = (running.loop, running.log)
    loop.awaitSleep(.epoll)
    switch waking {
    case .perform:
      loop.perform {
        log.write("B")
        loop.stop()
      }
    case .wakeUp:
      loop.wakeUp()
      waitUntil { log.count(of: "BW") >= 2 }
      loop.awaitSleep(.epoll)
      loop.stop()
    case .stop: loop.stop()
    case .stopOfMode: loop.stop(mode: .default)
    case .signalAndWakeUp:
      loop.signalled {
        log.write("S0")
        loop.stop()
      }
      loop.wakeUp()
    case .timer:
      loop.after(.zero) { _ in
        log.write("T")
        loop.stop()
      }
    case .message:
      loop.port(messages: 1) {
        log.write("P")
        loop.stop()
      }
    case .descriptor:
      loop.watch(ready.reading) { _, _ in
        log.write("D")
        loop.stop()
      }
    }
    #expect(running.result() == waking.log)
    watched.value?.invalidate()
  }

  @Test("a loop that sleeps on a futex and is given a descriptor serves it, without a pass before", .rule(.r50, .m7))
  func moves() throws {
    let pipe = try RawPipe()
    pipe.write()
    let running = RunningLoop { loop, log in
      loop.observe(log)
      loop.keepAlive()
    }
    let (loop, log) = (running.loop, running.log)
    loop.awaitSleep(.futex)
    let source = loop.watch(pipe.reading) { _, _ in
      log.write("D")
      loop.stop()
    }
    #expect(running.result() == "E BT BS BW AW D X stopped")
    source.invalidate()
  }

  @Test(
    "a loop that moves between a futex and an epoll set loses neither descriptors nor blocks", .rule(.r50, .m2, .m7))
  func movesUnderFire() throws {
    let rounds = 400
    let pipe = try RawPipe()
    let running = RunningLoop { loop, _ in loop.keepAlive() }
    let loop = running.loop
    let done = DispatchSemaphore(value: 0)
    let round = Atomic<Int>(0)
    let poster = startThread {
      for turn in 1...rounds {
        while round.load(ordering: .acquiring) < turn { sched_yield() }
        loop.perform { done.signal() }
      }
    }
    for turn in 1...rounds {
      pipe.write()
      if turn % 2 == 0 { loop.awaitSleep(.futex) }
      round.store(turn, ordering: .releasing)
      loop.watch(pipe.reading) { source, _ in
        pipe.read()
        source.invalidate()
        done.signal()
      }
      done.wait()
      done.wait()
    }
    poster.result()
    loop.stop()
    #expect(running.result() == "stopped")
    #expect(loop.pollSet() == nil)
  }

  @Test(
    "a loop whose epoll set is released and made again under it loses neither descriptors nor blocks",
    .rule(.r50, .m2, .m7))
  func setChangesUnderFire() throws {
    let rounds = 400
    let idle = try RawPipe()
    let ready = try RawPipe()
    let running = RunningLoop { loop, _ in loop.keepAlive() }
    let loop = running.loop
    let done = DispatchSemaphore(value: 0)
    let round = Atomic<Int>(0)
    let poster = startThread {
      for turn in 1...rounds {
        while round.load(ordering: .acquiring) < turn { sched_yield() }
        loop.perform { done.signal() }
      }
    }
    for turn in 1...rounds {
      let idler = loop.watch(idle.reading)
      ready.write()
      if turn % 2 == 0 { loop.awaitSleep(.epoll) }
      round.store(turn, ordering: .releasing)
      idler.invalidate()
      loop.watch(ready.reading) { source, _ in
        ready.read()
        source.invalidate()
        done.signal()
      }
      done.wait()
      done.wait()
    }
    poster.result()
    loop.stop()
    #expect(running.result() == "stopped")
  }

  @Test("a loop that other threads write to, post to and signal at once serves everything", .rule(.r50, .m2, .m6))
  func storm() throws {
    let count = 500
    let pipe = try RawPipe()
    let bytes = Atomic<Int>(0)
    let blocks = Atomic<Int>(0)
    let all = DispatchSemaphore(value: 0)
    let running = RunningLoop { loop, _ in
      loop.watch(pipe.reading) { _, _ in
        let read = pipe.read(3).count
        if bytes.wrappingAdd(read, ordering: .relaxed).newValue == count { all.signal() }
      }
    }
    let loop = running.loop
    let writer = startThread { for _ in 0..<count { pipe.write() } }
    let poster = startThread {
      for _ in 0..<count {
        loop.perform { if blocks.wrappingAdd(1, ordering: .relaxed).newValue == count { all.signal() } }
        loop.wakeUp()
      }
    }
    writer.result()
    poster.result()
    all.wait()
    all.wait()
    loop.stop()
    #expect(running.result() == "stopped")
  }

  @Test("two threads' loops share a source: every byte is read once", .rule(.r71, .m6))
  func shared() throws {
    let count = 300
    let pipe = try RawPipe()
    let bytes = Atomic<Int>(0)
    let all = DispatchSemaphore(value: 0)
    let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
      // The other loop may already have read the byte.
      let read = pipe.read().count
      if read > 0, bytes.wrappingAdd(1, ordering: .relaxed).newValue == count { all.signal() }
    }
    let running = (0..<2).map { _ in
      RunningLoop { loop, log in
        do { try loop.add(source, forMode: .default) } catch { log.write("\(error)") }
      }
    }
    for _ in 0..<count { pipe.write() }
    all.wait()
    for loop in running { loop.loop.stop(mode: .default) }
    #expect(running.map { $0.result() } == ["stopped", "stopped"])
    source.invalidate()
    #expect(pipe.read() == [])
  }
}
