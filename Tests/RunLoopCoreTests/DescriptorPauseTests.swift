// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Descriptor sources that pause, or are called once", .timeLimit(.minutes(20)))
struct DescriptorPauseTests {
  @Test("a paused source stays in its mode, keeps it alive and is not called until it is resumed")
  func pause() throws {
    let pipe = try RawPipe()
    let log = record { time, loop, log in
      pipe.write()
      let source = loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      source.pause()
      log.write("\(source.isPaused) \(loop.contains(source, forMode: .default))")
      time.at(.milliseconds(20)) { log.write("\(failure { () throws(RunLoopError) in try source.resume() } == nil)") }
      loop.run(log)
    }
    #expect(log == "true true E BT BS BW true AW D[7] BT BS BW AW X timedOut")
  }

  @Test("a paused source is not notified of a hang-up, and the loop sleeps", arguments: [true, false])
  func hangUp(isPausedFirst: Bool) throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, events in
        log.write("D\(events)")
        source.invalidate()
      }
      if isPausedFirst { source.pause() }
      log.write("\(failure { () throws(RunLoopError) in try loop.add(source, forMode: .default) } == nil)")
      source.pause()
      pipe.closeWriting()
      pipe.awaitEnd()
      loop.run(log)
      do { try source.resume() } catch { log.write("\(error)") }
      loop.run(log)
    }
    #expect(log == "true E BT BS BW AW X timedOut E BT BS BW AW D[hangUp] X finished")
  }

  @Test("one of two sources of a descriptor may pause")
  func oneOfTwo() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      socket.write()
      let reader = loop.watch(socket.reading, .readable) { _, events in log.write("R\(events)") }
      let writer = loop.watch(socket.reading, .writable) { _, events in log.write("W\(events)") }
      reader.pause()
      for _ in 0..<2 { loop.run(log, returnAfterSourceHandled: true) }
      writer.pause()
      do { try reader.resume() } catch { log.write("\(error)") }
      for _ in 0..<2 { loop.run(log, returnAfterSourceHandled: true) }
      reader.invalidate()
      loop.run(log)
    }
    #expect(
      log == "W[writable] handledSource W[writable] handledSource R[readable] handledSource R[readable] handledSource "
        + "timedOut")
  }

  @Test("readiness found before a pause is not served")
  func foundBefore() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      let sources = Box<[RunLoop.DescriptorSource]?>(nil)
      for pipe in pipes { pipe.write() }
      sources.value = pipes.map { pipe in
        loop.watch(pipe.reading) { source, _ in
          log.write("D")
          for other in sources.value ?? [] { other.pause() }
        }
      }
      loop.run(log)
    }
    #expect(log == "D timedOut")
  }

  @Test("a source that changes its events is notified of the new ones and no longer of the old ones")
  func otherEvents() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      socket.write()
      let source = loop.watch(socket.reading, .writable) { source, events in
        log.write("D\(events)")
        do { try source.setEvents(.readable) } catch { log.write("\(error)") }
        if events.contains(.readable) { source.pause() }
      }
      loop.run(log)
      log.write("\(source.events) \(source.isPaused)")
    }
    #expect(log == "D[writable] D[readable] timedOut [readable] true")
  }

  @Test("pausing and resuming cost one system call per mode, and none without a change")
  func cost() throws {
    #if DEBUG
      let pipe = try RawPipe()
      let log = record(observing: nil) { _, loop, log in
        let source = loop.watch(pipe.reading)
        do { try loop.add(source, forMode: "a") } catch { log.write("\(error)") }
        let plan = FaultPlan()
        plan.rule {
          for _ in 0..<2 { source.pause() }
          log.write("\(plan.counts[.epollControl] ?? 0)")
          for _ in 0..<2 { try? source.resume() }
          log.write("\(plan.counts[.epollControl] ?? 0) \(plan.counts.count)")
        }
      }
      #expect(log == "2 4 1")
    #endif
  }

  @Test("a source that cannot be watched again stays paused, and reports why")
  func cannotResume() throws {
    #if DEBUG
      let pipe = try RawPipe()
      let log = record(observing: nil) { _, loop, log in
        pipe.write()
        let source = loop.watch(pipe.reading) { source, _ in
          log.write("D")
          source.invalidate()
        }
        source.pause()
        let plan = FaultPlan()
        plan.plan(.epollControl, .fails(ENOSPC))
        let error = plan.rule { failure { () throws(RunLoopError) in try source.resume() } }
        let reason = SystemError(call: "epoll_ctl", number: ENOSPC)
        log.write("\(error == .cannotWatch(descriptor: pipe.reading, reason)) \(source.isPaused)")
        do { try source.resume() } catch { log.write("\(error)") }
        loop.run(log)
        log.write("\(failure { () throws(RunLoopError) in try source.resume() } == .invalidSource)")
      }
      #expect(log == "true true D finished true")
    #endif
  }

  @Test("a sleeping loop applies a change from another thread immediately")
  func otherThread() throws {
    let pipe = try RawPipe()
    pipe.write()
    let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
      source.invalidate()
    }
    source.pause()
    let running = RunningLoop { loop, log in
      do { try loop.add(source, forMode: .default) } catch { log.write("\(error)") }
    }
    running.loop.awaitSleep(.epoll)
    try source.resume()
    #expect(running.result() == "finished")
  }

  @Test("a one-shot source is called once, already invalid, and releases its handler")
  func once() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      do {
        let token = Token(log)
        let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable, repeats: false) {
          source, _ in
          token.touch()
          log.write("D \(source.isValid) \(loop.contains(source, forMode: .default))")
        }
        try loop.add(source, forMode: .default)
      } catch { log.write("\(error)") }
      loop.run(log)
    }
    #expect(log == "D false false released finished")
  }

  @Test("of several loops that find a descriptor ready, one calls a one-shot source")
  func onceInTwoLoops() throws {
    for _ in 0..<50 {
      let pipe = try RawPipe()
      let calls = Log()
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable, repeats: false) { _, _ in
        calls.write("D")
      }
      let loops = (0..<2).map { _ in
        RunningLoop { loop, log in do { try loop.add(source, forMode: .default) } catch { log.write("\(error)") } }
      }
      pipe.write()
      waitUntil { calls.text == "D" }
      for running in loops { running.loop.stop(mode: .default) }
      #expect(loops.allSatisfy { ["finished", "stopped"].contains($0.result()) })
      #expect(calls.text == "D")
    }
  }
}
