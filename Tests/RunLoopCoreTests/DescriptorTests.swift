// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Descriptor sources", .timeLimit(.minutes(20)))
struct DescriptorTests {
  @Test("a descriptor with two bytes is served twice by a handler that reads one", .rule(.r10, .r77, .m6))
  func levelTriggered() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      pipe.write([1, 2])
      loop.watch(pipe.reading) { _, events in log.write("D\(events)\(pipe.read())") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D[readable][1] BT BS BW AW D[readable][2] BT BS BW AW X timedOut")
  }

  @Test("unread data is left alone and reported again", .rule(.r77, .m6))
  func payload() throws {
    let pipe = try RawPipe()
    let bytes = [UInt8](1...20)
    let log = record(observing: nil) { _, loop, log in
      pipe.write(bytes)
      loop.watch(pipe.reading) { _, _ in
        log.write("D")
        if log.count(of: "D") == 3 { loop.stop() }
      }
      loop.run(log)
    }
    #expect(log == "D D D stopped")
    #expect(pipe.read(100) == bytes)
  }

  @Test("a counter's value is left alone", .rule(.r77, .m6))
  func counter() throws {
    let counter = try WakeDescriptor()
    for _ in 0..<3 { counter.wake() }
    let log = record(observing: nil) { _, loop, log in
      loop.watch(counter.descriptor.number) { _, _ in
        log.write("D")
        if log.count(of: "D") == 2 { loop.stop() }
      }
      loop.run(log)
    }
    #expect(log == "D D stopped")
    #expect(readBytes(counter.descriptor.number, 8) == [3, 0, 0, 0, 0, 0, 0, 0])
  }

  @Test("a source keeps its mode alive, ready or not", .rule(.r25, .r26, .m6))
  func keepsAlive() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      let source = loop.watch(pipe.reading)
      loop.run(log)
      source.invalidate()
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut finished")
  }

  @Test("a descriptor that is ready when it is added is served, and again after it left and came back", .rule(.r79))
  func readyAtAdd() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      let source = loop.watch(pipe.reading) { _, _ in log.write("D") }
      loop.run(log, for: .zero)
      loop.remove(source, forMode: .default)
      loop.run(log, for: .zero)
      do { try loop.add(source, forMode: .default) } catch { log.write("\(error)") }
      loop.run(log, for: .zero)
    }
    #expect(log == "D timedOut finished D timedOut")
  }

  @Test("a descriptor that becomes ready while the loop sleeps ends the sleep", .rule(.r2, .r45))
  func readyLater() throws {
    let pipe = try RawPipe()
    let log = record { time, loop, log in
      loop.watch(pipe.reading) { source, _ in
        time.stamp(log, "D")
        source.invalidate()
      }
      time.at(.milliseconds(20)) { pipe.write() }
      time.at(.milliseconds(30)) { log.write("late") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D20 X finished")
  }

  @Test("a pass that does not wait looks at the descriptors", .rule(.r3, .r12))
  func polls() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      pipe.write()
      loop.watch(pipe.reading) { _, _ in log.write("D") }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS D X timedOut")
  }

  @Test("a descriptor that was served ends a run that returns after a source", .rule(.r6, .r8))
  func handledSource() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      pipe.write([1, 2])
      loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      loop.run(log, returnAfterSourceHandled: true)
      loop.run(log, for: .zero, returnAfterSourceHandled: true)
      loop.run(log, for: .zero, returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS BW AW D[1] X handledSource E BT BS D[2] X handledSource E BT BS X timedOut")
  }

  @Test("a descriptor that is still ready is served in each mode of its source, and in no other", .rule(.r82, .m6))
  func perMode() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      let source = loop.watch(pipe.reading) { _, _ in log.write("D") }
      do { try loop.add(source, forMode: "a") } catch { log.write("\(error)") }
      loop.keepAlive("b")
      loop.run(log, for: .zero)
      loop.run(log, mode: "a", for: .zero)
      loop.run(log, mode: "b", for: .zero)
      pipe.read()
      loop.run(log, for: .zero)
      loop.run(log, mode: "a", for: .zero)
    }
    #expect(log == "D timedOut D timedOut timedOut timedOut timedOut")
  }

  @Test("a source may be in two loops, and leaves both when it is invalidated", .rule(.r71, .m6))
  func twoLoops() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, first, log in
      pipe.write()
      let source = first.watch(pipe.reading) { _, _ in log.write("D") }
      first.run(log, for: .zero)
      onVirtualTime { _, second in
        do { try second.add(source, forMode: .default) } catch { log.write("\(error)") }
        second.run(log, for: .zero)
        pipe.read()
        second.run(log, for: .zero)
        source.invalidate()
        second.run(log, for: .zero)
      }
      first.run(log, for: .zero)
    }
    #expect(log == "D timedOut D timedOut timedOut finished finished")
  }

  @Test("a source that is in a mode already is left as it is, and one remove takes it out", .rule(.r22))
  func duplicate() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      pipe.write()
      let source = loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      do { try loop.add(source, forMode: .default) } catch { log.write("\(error)") }
      loop.run(log)
      loop.remove(source, forMode: .default)
      log.write("\(loop.contains(source, forMode: .default)) \(loop.statistics.rejectionCount)")
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D[7] BT BS BW AW X timedOut false 0 finished")
  }

  @Test("a source that is invalidated in its own call-out keeps its handler until it has returned", .rule(.r74, .m22))
  func invalidateInside() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      func add() -> RunLoop.DescriptorSource {
        let probe = Token(log)
        return loop.watch(pipe.reading) { source, _ in
          source.invalidate()
          source.invalidate()
          log.write("D")
          probe.touch()
        }
      }
      let source = add()
      loop.run(log)
      log.write("\(source.isValid) \(loop.contains(source, forMode: .default))")
    }
    #expect(log == "D released finished false false")
  }

  @Test("the handler of a source is released when it is invalidated", .rule(.r74, .m22))
  func releasesHandler() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      func add() -> RunLoop.DescriptorSource {
        let probe = Token(log)
        return loop.watch(pipe.reading) { _, _ in probe.touch() }
      }
      let source = add()
      log.write("added")
      source.invalidate()
      log.write("invalid")
    }
    #expect(log == "added released invalid")
  }

  @Test(
    "a source that leaves during its handler's call lives until the call returns", .rule(.r74, .r108),
    arguments: [false, true])
  func leavesWhileCalled(inNestedRun: Bool) throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      for pipe in pipes { pipe.write() }
      let only = Box<RunLoop.DescriptorSource?>(nil)
      @Sendable func leave() {
        if let source = only.value { loop.remove(source, forMode: .default) }
        only.value = nil
      }
      only.value = { [probe = Token(log)] in
        loop.watch(pipes[0].reading) { _, _ in
          log.write("a")
          if inNestedRun { loop.nest(log, for: .zero) } else { leave() }
          log.write("left")
          probe.touch()
        }
      }()
      loop.watch(pipes[1].reading) { _, _ in
        log.write("b")
        pipes[1].read()
        if inNestedRun { leave() }
      }
      loop.run(log)
    }
    #expect(log == (inNestedRun ? "a [ b timedOut ] left released timedOut" : "a left released b timedOut"))
  }

  @Test("a source outlives the thread of its loop, and can join another", .rule(.r115, .r116))
  func threadEnds() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write()
      let source = onVirtualTime { _, other in other.watch(pipe.reading) { _, _ in log.write("D") } }
      do { try loop.add(source, forMode: .default) } catch { log.write("\(error)") }
      log.write("\(source.isValid)")
      loop.run(log, for: .zero)
    }
    #expect(log == "true D timedOut")
  }

  @Test("two sources of one descriptor are two", .rule(.m5))
  func identity() throws {
    let pipe = try RawPipe()
    let sources = (0..<2).map { _ in
      RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in }
    }
    #expect(sources[0] != sources[1])
    #expect(Set(sources).count == 2)
  }

  @Test("a run nested in a handler serves what else is ready", .rule(.r68, .r108, .m19))
  func nested() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record { _, loop, log in
      for (index, pipe) in pipes.enumerated() {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in
          log.write("D")
          pipe.read()
          if log.count(of: "D") == 1 { loop.nest(log, for: .milliseconds(index + 1)) }
        }
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D [ E BT BS BW AW D BT BS BW AW X timedOut ] BT BS BW AW X timedOut")
  }
}
