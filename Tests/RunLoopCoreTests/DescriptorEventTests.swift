// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The events of descriptor sources", .timeLimit(.minutes(20)))
struct DescriptorEventTests {
  @Test("reading and writing are waited for apart", .rule(.m6))
  func apart() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      loop.watch(socket.reading, .readable) { _, events in
        log.write("R\(events)")
        socket.read()
      }
      loop.watch(socket.reading, .writable) { _, events in log.write("W\(events)") }
      for _ in 0..<2 { loop.run(log, returnAfterSourceHandled: true) }
      socket.write()
      for _ in 0..<3 { loop.run(log, returnAfterSourceHandled: true) }
    }
    #expect(
      log == "W[writable] handledSource W[writable] handledSource R[readable] handledSource "
        + "W[writable] handledSource W[writable] handledSource")
  }

  @Test("a source that waits for both is notified of both at once", .rule(.m6))
  func both() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      loop.watch(socket.reading, [.readable, .writable]) { _, events in log.write("D\(events)") }
      loop.run(log, returnAfterSourceHandled: true)
      socket.write()
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "D[writable] handledSource D[readable, writable] handledSource")
  }

  @Test("an event that no source requested does not wake the loop", .rule(.m6))
  func notWaitedFor() throws {
    let socket = try RawPipe(.socket)
    let log = record { _, loop, log in
      socket.write()
      let writer = loop.watch(socket.reading, .writable) { source, events in
        log.write("W\(events)")
        source.invalidate()
      }
      loop.watch(socket.writing, .readable) { _, _ in log.write("R") }
      loop.run(log)
      log.write("\(writer.isValid)")
    }
    #expect(log == "E BT BS BW AW W[writable] BT BS BW AW X timedOut false")
  }

  @Test(
    "the end of a pipe is a hang-up, for whatever a source waits", .rule(.r77, .m6), arguments: [Events.readable, []])
  func hangUp(events: Events) throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      loop.watch(pipe.reading, events) { source, events in
        log.write("D\(events)")
        if log.count(of: "D[hangUp]") == 2 { source.invalidate() }
      }
      pipe.closeWriting()
      pipe.awaitEnd()
      loop.run(log)
    }
    #expect(log == "D[hangUp] D[hangUp] finished")
  }

  @Test("data written before the end can be read with the hang-up", .rule(.r77, .m6))
  func hangUpWithData() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.write([1, 2])
      pipe.closeWriting()
      pipe.awaitEnd()
      loop.watch(pipe.reading) { source, events in
        log.write("D\(events)\(pipe.read())")
        if !events.contains(.readable) { source.invalidate() }
      }
      loop.run(log)
    }
    #expect(log == "D[readable, hangUp][1] D[readable, hangUp][2] D[hangUp][] finished")
  }

  @Test("a pipe without a reader is an error, whatever a source waits for", .rule(.m6))
  func error() throws {
    let pipe = try RawPipe()
    let log = record(observing: nil) { _, loop, log in
      pipe.closeReading()
      pipe.awaitEnd()
      for events in [Events.writable, []] {
        loop.watch(pipe.writing, events) { source, events in
          log.write("D\(events)")
          source.invalidate()
        }
        loop.run(log)
      }
    }
    #expect(log == "D[writable, error] finished D[error] finished")
  }

  @Test(
    "a peer that shuts down writing is a hang-up to sources that ask, and the end of reading to others", .rule(.m6))
  func halfClosed() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      shutdown(socket.writing, Int32(SHUT_WR))
      for events in [Events.readable, .hangUp, [.readable, .hangUp]] {
        loop.watch(socket.reading, events) { source, events in
          log.write("D\(events)")
          source.invalidate()
        }
        loop.run(log)
      }
    }
    #expect(log == "D[readable] finished D[hangUp] finished D[readable, hangUp] finished")
  }

  @Test(
    "of two sources of a descriptor, only the one that asks is notified that the peer shut down writing", .rule(.m6)
  )
  func halfClosedForOne() throws {
    let socket = try RawPipe(.socket)
    let log = record(observing: nil) { _, loop, log in
      shutdown(socket.writing, Int32(SHUT_WR))
      for (name, events) in [("A", Events.hangUp), ("B", .readable)] {
        loop.watch(socket.reading, events) { source, events in
          log.write("\(name)\(events)")
          source.invalidate()
        }
      }
      loop.run(log)
    }
    #expect(["A[hangUp] B[readable] finished", "B[readable] A[hangUp] finished"].contains(log), "\(log)")
  }

  @Test("events for a source that has left are not reported to the other source of the descriptor", .rule(.m6))
  func interestEnds() throws {
    let socket = try RawPipe(.socket)
    let log = record { _, loop, log in
      socket.write()
      let writer = loop.watch(socket.reading, .writable) { _, _ in log.write("W") }
      loop.watch(socket.reading, .readable) { _, events in log.write("R\(events)\(socket.read())") }
      writer.invalidate()
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW R[readable][7] BT BS BW AW X timedOut")
  }

  typealias Events = RunLoop.DescriptorSource.Events
}
