// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import TestSupport
import Testing

@testable import RunLoopCore

/// A host without work of its own, which polls the gate instead of waiting.
private final class IdleHost: RunLoopHost, @unchecked Sendable {
  // Sendable: used only by the loop's thread.
  private let gate: Gate
  private let log: Log
  /// Called during the next wait.
  var callOut: (() -> Void)?
  /// Whether an item of the host keeps every mode alive.
  var isAlive = false
  /// Called between the loop's query and its last check.
  var whenAsked: (() -> Void)?

  init(_ gate: Gate, _ log: Log) {
    self.gate = gate
    self.log = log
  }

  func wait(in mode: HostedMode) -> HostReport {
    let body = callOut
    callOut = nil
    body?()
    let isOpen = isReadableNow(gate.descriptor)
    log.write(isOpen ? "woken" : "asleep")
    // The test checks for an endless wait instead of performing one.
    return isOpen ? [] : .stopped
  }

  func look(in mode: HostedMode) -> HostReport { [] }

  func runHasFinished(_ mode: HostedMode, of loop: RunLoop) {}
  func keepsAlive(_ mode: HostedMode) -> Bool {
    let body = whenAsked
    whenAsked = nil
    body?()
    return isAlive
  }

  func end() {}
}

/// Runs a body at the last check for work, after the sleep was announced.
private final class AtLastLook: DeferredWork {
  private let loop: RunLoop
  private var body: (() -> Void)?

  init(_ loop: RunLoop, _ body: @escaping () -> Void) {
    self.loop = loop
    self.body = body
  }

  func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
    guard loop.word.state.sleeper == .hosted, let body else { return false }
    self.body = nil
    body()
    return false
  }

  func end() {}
}

@Suite("A loop that waits in a host")
struct HostTests {
  /// Runs `body` on a thread whose loop waits in a host, and returns the log.
  private func hosted(_ body: @escaping @Sendable (RunLoop, IdleHost, Log) -> Void) -> String {
    onNewThread {
      let log = Log()
      let loop = RunLoop.current
      let made = Box<IdleHost?>(nil)
      do throws(RunLoopError) {
        try loop.setHost { gate in
          let host = IdleHost(gate, log)
          made.value = host
          return host
        }
      } catch { log.write("\(error)") }
      if let host = made.value { body(loop, host, log) }
      return log.text
    }
  }

  #if DEBUG
    @Test("a host that needs descriptors is created only when they are available", .rule(.r114, .m7))
    func descriptorsForHost() {
      let log = onNewThread {
        let (log, plan, loop) = (Log(), FaultPlan(), RunLoop.current)
        // The gate uses the first one.
        plan.plan(.eventCreate, nil, nil, .fails(EMFILE))
        plan.beginRuling()
        defer { FaultPlan.endRuling() }
        for _ in 0..<2 {
          do throws(RunLoopError) {
            try loop.setHost(sparingDescriptors: 2) { gate in
              log.write("made")
              return IdleHost(gate, log)
            }
          } catch { log.write("\(error == .cannotBeHosted(SystemError(call: "eventfd", number: EMFILE)))") }
        }
        log.write("\(plan.counts[.eventCreate] ?? 0)")
        return log.text
      }
      #expect(log == "true made 6")
    }
  #endif

  @Test(
    "the last item that leaves in a call-out of the host ends the run, as it would at the end of a pass",
    .rule(.r28, .r29))
  func lastItemGoesDuringTheWait() {
    let log = hosted { loop, host, log in
      let source = loop.keepAlive()
      host.callOut = {
        loop.run(log, for: .zero)
        source.invalidate()
        loop.run(log, mode: "other", for: .zero)
      }
      loop.run(log, for: .seconds(30))
    }
    #expect(log == "timedOut finished woken finished")
  }

  @Test("a loop kept alive only by its host sleeps until its end", .rule(.r5, .m3))
  func keptAliveByHost() {
    let log = hosted { loop, host, log in
      host.isAlive = true
      loop.run(log, for: .seconds(30))
      host.isAlive = false
      loop.run(log, for: .seconds(30))
    }
    #expect(log == "asleep stopped finished")
  }

  @Test("an item added and removed while the host is asked changes nothing", .rule(.r5, .m3))
  func itemComesAndGoesWhileAsked() {
    let log = hosted { loop, host, log in
      host.isAlive = true
      host.whenAsked = { loop.keepAlive().invalidate() }
      loop.run(log, for: .seconds(30))
    }
    #expect(log == "asleep stopped")
  }

  @Test(
    "a wake-up at the loop's last look before it sleeps is not lost", .rule(.r5, .r9, .m3),
    arguments: ["wake", "stop"])
  func wokenAtLastLook(by means: String) {
    let log = hosted { loop, host, log in
      loop.keepAlive()
      loop.observe(log)
      loop.deferredWork = AtLastLook(loop) {
        switch means {
        case "wake": loop.wakeUp()
        default: loop.stop()
        }
      }
      loop.run(log, for: .seconds(30))
    }
    let expected = [
      "wake": "E BT BS BW AW BT BS BW asleep AW X stopped", "stop": "E BT BS BW AW X stopped",
    ]
    #expect(log == expected[means])
  }
}
