// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Readiness that is out of date", .timeLimit(.minutes(20)))
struct DescriptorReadinessTests {
  /// Runs two ready descriptors, of which the first handler removes the other source.
  private func logOfTwo(invalidates: Bool) throws -> String {
    let pipes = [try RawPipe(), try RawPipe()]
    return record { _, loop, log in
      let sources = Box<[RunLoop.DescriptorSource]?>(nil)
      sources.value = pipes.map { pipe in
        pipe.write()
        return loop.watch(pipe.reading) { source, _ in
          log.write("D")
          pipe.read()
          for other in sources.value ?? [] where other != source {
            if invalidates { other.invalidate() } else { loop.remove(other, forMode: .default) }
          }
        }
      }
      loop.run(log)
      sources.value = nil
    }
  }

  @Test("a source that leaves is not called for the same wait's readiness", .rule(.m19), arguments: [false, true])
  func leaves(invalidates: Bool) throws {
    let log = try logOfTwo(invalidates: invalidates)
    #expect(log.split(separator: " ").count { $0 == "D" } == 1)
  }

  @Test("readiness that was discarded costs no pass", .rule(.m19, .m20), arguments: [false, true])
  func costsNoPass(invalidates: Bool) throws {
    #expect(try logOfTwo(invalidates: invalidates) == "E BT BS BW AW D BT BS BW AW X timedOut")
  }

  @Test("a source that leaves and comes back is called for what a new wait finds", .rule(.r79, .m19))
  func comesBack() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record { _, loop, log in
      let sources = Box<[RunLoop.DescriptorSource]?>(nil)
      sources.value = pipes.map { pipe in
        pipe.write()
        return loop.watch(pipe.reading) { source, _ in
          log.write("D")
          pipe.read()
          for other in sources.value ?? [] where other != source {
            loop.remove(other, forMode: .default)
            do { try loop.add(other, forMode: .default) } catch { log.write("\(error)") }
          }
        }
      }
      loop.run(log)
      sources.value = nil
    }
    #expect(log == "E BT BS BW AW D BT BS BW AW D BT BS BW AW X timedOut")
  }

  @Test("readiness that was discarded does not keep a pass without a wait from looking", .rule(.r3, .m19))
  func looksAgain() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record(observing: nil) { _, loop, log in
      let sources = Box<[RunLoop.DescriptorSource]?>(nil)
      sources.value = pipes.map { pipe in
        pipe.write()
        return loop.watch(pipe.reading) { source, _ in
          log.write("D")
          if log.count(of: "D") == 1 { for other in sources.value ?? [] where other != source { other.invalidate() } }
        }
      }
      loop.run(log, for: .zero)
      loop.run(log, for: .zero)
      sources.value = nil
    }
    #expect(log == "D timedOut D timedOut")
  }

  @Test(
    "a descriptor that an earlier run found ready and that is no longer ready is not reported", .rule(.r77, .m6, .m19),
    arguments: [false, true])
  func betweenRuns(returnsAfterSource: Bool) throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record { _, loop, log in
      for pipe in pipes {
        pipe.write()
        loop.watch(pipe.reading) { _, _ in log.write("D") }
      }
      log.write("\(loop.run(mode: .default, for: .zero, returnAfterSourceHandled: returnsAfterSource))")
      for pipe in pipes { pipe.read() }
      loop.run(log)
    }
    let first = returnsAfterSource ? "E BT BS D X handledSource" : "E BT BS D D X timedOut"
    #expect(log == "\(first) E BT BS BW AW X timedOut")
  }

  @Test("a source that hands its descriptor to another takes its readiness with it", .rule(.m19))
  func leavesToAnother() throws {
    let sockets = [try RawPipe(.socket), try RawPipe(.socket)]
    let log = record { _, loop, log in
      let readers = Box<[RunLoop.DescriptorSource]?>(nil)
      readers.value = sockets.map { socket in
        socket.write()
        // Waits for an event that never occurs, on the same descriptor.
        loop.watch(socket.reading, .hangUp) { _, _ in log.write("H") }
        return loop.watch(socket.reading) { _, _ in
          log.write("R")
          for reader in readers.value ?? [] { reader.invalidate() }
        }
      }
      loop.run(log)
      readers.value = nil
    }
    #expect(log == "E BT BS BW AW R BT BS BW AW X timedOut")
  }
}
