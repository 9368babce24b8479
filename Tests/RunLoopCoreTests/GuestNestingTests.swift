// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A guest, runs and other guests", .timeLimit(.minutes(20)))
struct GuestNestingTests {
  @Test("the host's call-outs may run the loop, and whatever they leave is served later", .rule(.r108, .m2, .m28))
  func runByHost() {
    let log = host { time, loop, guest, log in
      loop.keepAlive()
      guest.turn(log)
      loop.perform { log.write("B") }
      loop.nest(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      loop.nest(log, for: .milliseconds(3))
      log.write("\(guest.timeoutMilliseconds) \(loop.currentMode == .default)")
      loop.perform { loop.perform(inModes: ["other"]) { log.write("C") } }
      loop.keepAlive("other")
      loop.nest(log, mode: "other")
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
    }
    #expect(
      log == "| E BT BS BW timedOut [ E BT BS B X timedOut ] quiet [ E BT BS BW AW X timedOut ] 2 true "
        + "[ timedOut ] readable | AW BT BS BW timedOut X")
  }

  @Test(
    "a wake-up before or in a run by the host belongs to the guest, unless the run has handled it",
    .rule(.r49, .m2, .m26, .m28))
  func wakeUpsAroundRun() {
    let log = host { _, loop, guest, log in
      loop.keepAlive()
      guest.turn(log)
      loop.wakeUp()
      loop.nest(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      loop.once(.exit) { loop.wakeUp() }
      loop.nest(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
    }
    #expect(
      log == "| E BT BS BW timedOut [ E BT BS X timedOut ] readable | AW BT BS BW timedOut "
        + "[ E BT BS X timedOut ] readable | AW BT BS BW timedOut quiet X")
  }

  @Test("a stop of a run by the host stops that run only", .rule(.r35, .r36, .m28))
  func stopInRun() {
    let log = host { _, loop, guest, log in
      loop.keepAlive()
      guest.turn(log)
      loop.perform { loop.stop() }
      loop.nest(log, for: .seconds(1))
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
    }
    #expect(log == "| E BT BS BW timedOut [ E BT BS BW AW X stopped ] quiet | timedOut X")
  }

  @Test(
    "a host that is run by a call-out of the loop, and services it, makes a nested run that polls",
    .rule(.r86, .r99a, .r108, .r109, .m28))
  func reentrant() {
    let log = host { time, loop, guest, log in
      loop.after(.milliseconds(1)) { _ in
        log.write("T")
        log.write("\(guest.nextDeadline == nil) \(guest.isReadable)")
        loop.perform { log.write("B") }
        loop.signalled { log.write("S0") }
        guest.turn(log)
        guest.turn(log)
      }
      guest.turn(log)
      guest.turn(log, time)
    }
    #expect(
      log == "| E BT BS BW timedOut | AW BT BS T true false | E BT BS B S0 X handledSource | E BT BS X timedOut "
        + "BW timedOut X")
  }

  @Test("while the host runs the loop, the guest's descriptor is quiet, and servicing it is a nested run", .rule(.m28))
  func serviceInRun() throws {
    let pipe = try RawPipe()
    let log = host { _, loop, guest, log in
      loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      guest.turn(log)
      loop.keepAlive("other")
      loop.perform(inModes: ["other"]) {
        pipe.write()
        loop.wakeUp()
        log.write(guest.isReadable ? "readable" : "quiet")
        log.write("\(guest.timeout == nil)")
        guest.turn(log)
      }
      loop.nest(log, mode: "other")
      pipe.write()
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
    }
    #expect(
      log == "| E BT BS BW timedOut [ quiet true | E BT BS D[7] X handledSource timedOut ] readable "
        + "| AW BT BS D[7] BW handledSource X")
  }

  @Test("a guest in a call-out is to the guest around it what a nested run is to a run", .rule(.r31, .r108, .m28))
  func nestedGuest() {
    let log = host { time, loop, outer, log in
      loop.after(.milliseconds(1)) { _ in
        do {
          log.write("[")
          let inner = try RunLoop.Guest(mode: "inner")
          log.write("\(loop.currentMode == "inner") \(outer.timeout == nil) \(outer.isReadable) \(inner.isReadable)")
          loop.keepAlive("inner")
          inner.turn(log)
          loop.perform(inModes: ["inner"]) { log.write("B") }
          loop.stop()
          log.write("\(outer.isReadable) \(inner.isReadable)")
          inner.turn(log)
          inner.invalidate()
          log.write("] \(loop.currentMode == .default) \(inner.descriptor)")
        } catch {
          log.write("\(error)")
        }
      }
      loop.keepAlive()
      outer.turn(log)
      outer.turn(log, time)
      log.write(outer.isReadable ? "readable" : "quiet")
    }
    #expect(
      log == "| E BT BS BW timedOut | AW BT BS [ true true false true | timedOut false true | B stopped "
        + "] true -1 BW timedOut quiet X")
  }

  @Test("a guest in a call-out of the host suspends the one around it, which then sleeps on", .rule(.r108, .m28))
  func nestedInHost() {
    let log = host { time, loop, outer, log in
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      outer.turn(log)
      do {
        let inner = try RunLoop.Guest()
        inner.turn(log)
        loop.perform { log.write("B") }
        log.write("\(outer.isReadable) \(inner.isReadable)")
        inner.turn(log)
        log.write("\(outer.timeoutMilliseconds) \(inner.timeoutMilliseconds)")
        inner.invalidate()
        log.write("\(outer.timeoutMilliseconds) \(outer.isReadable)")
        outer.turn(log, time)
      } catch {
        log.write("\(error)")
      }
    }
    #expect(
      log == "| E BT BS BW timedOut | E BT BS BW timedOut false true | AW BT BS B BW timedOut -1 5 X 5 false "
        + "| AW BT BS T BW finished X")
  }

  @Test("a guest that ends in a call-out of its loop ends once the call-outs are over", .rule(.m28))
  func invalidatedInCallOut() {
    let log = record { _, loop, log in
      do {
        let guest = try RunLoop.Guest()
        loop.perform {
          guest.invalidate()
          log.write("B \(guest.isValid)")
          guest.turn(log)
        }
        guest.turn(log)
        log.write("\(guest.isValid) \(guest.descriptor) \(loop.currentMode == nil)")
        guest.turn(log)
        guest.invalidate()
        loop.perform { log.write("C") }
        loop.run(log)
      } catch {
        log.write("\(error)")
      }
    }
    #expect(log == "| E BT BS B true | finished X finished false -1 true | finished E BT BS C BW AW X timedOut")
  }

  @Test(
    "a guest that ends before its wait does not sleep, and one that ends in the host's run ends after it",
    .rule(.m28))
  func invalidatedElsewhere() {
    let log = record { _, loop, log in
      do {
        let first = try RunLoop.Guest()
        loop.once(.beforeWaiting) { first.invalidate() }
        first.turn(log)
        log.write("\(first.isValid) \(loop.isWaiting)")
        let second = try RunLoop.Guest()
        second.turn(log)
        loop.perform {
          second.invalidate()
          log.write("\(second.isValid)")
        }
        loop.nest(log)
        log.write("\(second.isValid) \(loop.currentMode == nil)")
        let third = try RunLoop.Guest()
        third.invalidate()
        log.write("\(third.isValid)")
      } catch {
        log.write("\(error)")
      }
    }
    #expect(
      log == "| E BT BS BW X finished false false | E BT BS BW finished [ E BT BS true X X timedOut ] false true false")
  }

  @Test("abandoning a guest in a call-out stops the process with a message", .rule(.m28))
  func left() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      onVirtualTime { _, loop in
        loop.perform { _ = try? RunLoop.Guest() }
        loop.run(mode: .default, for: Duration.seconds(1))
      }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("was made in a call-out and left there"), "\(text)")
  }
}
