// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Events that make a guest's descriptor readable", .timeLimit(.minutes(20)))
struct GuestWakeTests {
  /// A cause of a wake-up, with the result of the turn that it causes and whether observers see a pass.
  struct Reason: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let log: String
    let action: @Sendable (RunLoop, Items, Log) -> Void
  }

  /// The items that were already in the loop.
  struct Items: Sendable {
    let source: RunLoop.Source
    let port: Port
    let timer: Timer
    let pipe: RawPipe
  }

  private static let reasons: [Reason] = [
    Reason(testDescription: "a block", log: "AW BT BS B BW timedOut") { loop, _, log in loop.perform { log.write("B") }
    },
    Reason(testDescription: "a block for common modes", log: "AW BT BS B BW timedOut") { loop, _, log in
      loop.perform(inModes: [.common]) { log.write("B") }
    },
    Reason(testDescription: "a wake-up", log: "AW BT BS BW timedOut") { loop, _, _ in loop.wakeUp() },
    Reason(testDescription: "a signalled source and a wake-up", log: "AW BT BS S0 BW handledSource") { loop, items, _ in
      items.source.signal()
      loop.wakeUp()
    },
    Reason(testDescription: "a stop", log: "AW BT BS BW stopped") { loop, _, _ in loop.stop() },
    Reason(testDescription: "a stop of the mode", log: "AW BT BS BW stopped") { loop, _, _ in loop.stop(mode: .default)
    },
    Reason(testDescription: "a message", log: "AW BT BS S1 BW handledSource") { _, items, _ in
      try? items.port.send(Port.Message())
    },
    Reason(testDescription: "a timer that is moved to the past", log: "AW BT BS T BW timedOut") { loop, items, _ in
      items.timer.deadline = loop.now
    },
    Reason(testDescription: "a timer before the others", log: "timedOut") { loop, _, log in
      loop.after(.seconds(1)) { _ in log.write("T2") }
    },
    Reason(testDescription: "a timer that is moved to an earlier date", log: "timedOut") { loop, items, _ in
      items.timer.deadline = loop.now.advanced(by: .seconds(1))
    },
    Reason(testDescription: "the first descriptor", log: "timedOut") { loop, items, log in
      loop.watch(items.pipe.reading) { _, _ in log.write("D") }
    },
    Reason(testDescription: "the first descriptor, which is ready", log: "AW BT BS D BW handledSource") {
      loop, items, log in
      items.pipe.write()
      loop.watch(items.pipe.reading) { _, _ in log.write("D\(items.pipe.read().count - 1)".replacing("D0", with: "D")) }
    },
    Reason(testDescription: "a source that is signalled already, and a wake-up", log: "AW BT BS S2 BW handledSource") {
      loop, _, log in
      loop.signalled { log.write("S2") }
      loop.wakeUp()
    },
    Reason(testDescription: "a mode that is made common", log: "timedOut") { loop, _, _ in
      #expect(failure { () throws(RunLoopError) in try loop.addCommonMode("other") } == nil)
    },
  ]

  @Test("from another thread, and once", .rule(.r45, .r50, .r70, .m2, .m3, .m25, .m28), arguments: reasons)
  func fromAnotherThread(reason: Reason) { #expect(turns(reason, onOwnThread: false) == reason.log) }

  @Test("from the host's own call-outs, and once", .rule(.r45, .r50, .r70, .m2, .m3, .m25, .m28), arguments: reasons)
  func fromOwnThread(reason: Reason) { #expect(turns(reason, onOwnThread: true) == reason.log) }

  /// Logs the turn that follows a cause, checking that the descriptor is readable only for that turn.
  private func turns(_ reason: Reason, onOwnThread: Bool) -> String {
    let log = host { _, loop, guest, log in
      guard let pipe = try? RawPipe() else { return log.write("no pipe") }
      let source = RunLoop.Source { log.write("S0") }
      loop.add(source, forMode: .default)
      let items = Items(
        source: source, port: loop.port(messages: 0) { log.write("S1") },
        timer: loop.after(.seconds(3600)) { _ in log.write("T") }, pipe: pipe)
      guest.service()
      if guest.isReadable { log.write("readable before") }
      if onOwnThread { reason.action(loop, items, log) } else { onNewThread { reason.action(loop, items, log) } }
      if !guest.isReadable { log.write("not readable") }
      log.clear()
      log.write("\(guest.service())")
      if guest.isReadable { log.write("readable after") }
      guest.invalidate()
    }
    return log.hasSuffix(" X") ? String(log.dropLast(2)) : log
  }

  @Test("a guest's descriptor is readable as long as a descriptor of the mode is ready", .rule(.r77, .m6, .m28))
  func descriptor() throws {
    let pipe = try RawPipe()
    let log = host { _, loop, guest, log in
      let source = loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      pipe.write([1, 2])
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      pipe.write([3])
      source.invalidate()
      // The loop keeps sleeping. The host is called because the mode is empty.
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      loop.watch(pipe.reading) { _, _ in log.write("E\(pipe.read())") }
      guest.turn(log)
    }
    #expect(
      log == "| E BT BS BW timedOut quiet readable | AW BT BS D[1] BW handledSource readable "
        + "| AW BT BS D[2] BW handledSource quiet | finished quiet | AW BT BS E[3] BW handledSource X")
  }

  @Test("a host with its own edge-triggered set is notified of each reason", .rule(.m28))
  func byTheEdge() throws {
    let pipe = try RawPipe()
    let log = host { _, loop, guest, log in
      loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      let edges = EdgeSet(guest.descriptor)
      log.write("\(edges.hasEvent) \(edges.hasEvent)")
      guest.turn(log)
      for _ in 0..<2 {
        loop.perform { log.write("B") }
        log.write("\(edges.hasEvent) \(edges.hasEvent)")
        guest.turn(log)
        pipe.write()
        log.write("\(edges.hasEvent) \(edges.hasEvent)")
        guest.turn(log)
      }
    }
    let turn = " true false | AW BT BS B BW timedOut true false | AW BT BS D[7] BW handledSource"
    #expect(log == "true false | E BT BS BW timedOut" + turn + turn + " X")
  }

  @Test("a deadline, if the guest signals deadlines, and none that was taken back", .rule(.r14, .m28))
  func deadline() {
    let log = Log()
    onNewThread {
      do {
        let loop = RunLoop.current
        let guest = try RunLoop.Guest(signalsDeadlines: true)
        let timer = loop.after(.milliseconds(2)) { _ in log.write("T") }
        guest.service()
        while timer.isValid {
          awaitReadable(guest.descriptor)
          guest.service()
        }
        log.write(guest.isReadable ? "readable" : "quiet")
        // Only a timer armed in the kernel can open the gate.
        let armed = { log.write(System.isTimerArmed(inSet: guest.descriptor).map { $0 ? "armed" : "idle" } ?? "none") }
        let other = loop.after(.seconds(3600)) { _ in log.write("never") }
        guest.turn(log)
        armed()
        loop.keepAlive()
        other.invalidate()
        guest.turn(log)
        armed()
        log.write(guest.isReadable ? "readable" : "quiet")
        guest.invalidate()
      } catch {
        log.write("\(error)")
      }
    }
    #expect(log.text == "T quiet | timedOut armed | timedOut idle quiet")
  }

  @Test(
    "under fire from four threads nothing is lost and nothing is called twice", .rule(.r120, .m2, .m28),
    arguments: [false, true])
  func underFire(signalsDeadlines: Bool) {
    let perThread = 1000
    let counts = Counter()
    let loopMade = Box<RunLoop?>(nil)
    let host = startThread {
      guard let guest = try? RunLoop.Guest(signalsDeadlines: signalsDeadlines) else { return false }
      let loop = guest.loop
      loop.keepAlive()
      loopMade.value = loop
      while counts.value < 4 * perThread {
        var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&entry, 1, signalsDeadlines ? -1 : guest.timeoutMilliseconds)
        guest.service()
      }
      guest.invalidate()
      return true
    }
    let posters = (0..<4).map { number in
      startThread {
        waitUntil { loopMade.value != nil }
        guard let loop = loopMade.value else { return }
        for turn in 0..<perThread {
          switch (number + turn) % 3 {
          case 0: loop.perform { counts.add() }
          case 1: loop.after(.microseconds(turn % 50)) { _ in counts.add() }
          default:
            loop.signalled { counts.add() }
            loop.wakeUp()
          }
        }
      }
    }
    for poster in posters { poster.result() }
    #expect(host.result())
    #expect(counts.value == 4 * perThread)
  }
}

/// An epoll set that watches a descriptor with edge triggering.
private final class EdgeSet {
  private let epoll = crl_epoll_create()

  init(_ descriptor: Int32) {
    let events = EPOLLIN.rawValue | EPOLLET.rawValue
    if crl_epoll_control(epoll, EPOLL_CTL_ADD, descriptor, events, 0) != 0 { Issue.record("cannot be watched") }
  }

  deinit { _ = crl_close(epoll) }

  /// Whether there was an edge since the last query.
  var hasEvent: Bool {
    var event = epoll_event()
    return crl_epoll_wait_milliseconds(epoll, &event, 1, 0) == 1
  }
}
