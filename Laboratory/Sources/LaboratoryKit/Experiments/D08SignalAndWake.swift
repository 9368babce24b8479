// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// D8: the events that wake the loop.
struct SignalAndWake: Experiment {
  let id = "D8"
  let title = "A source0 is woken for, a source1 wakes"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A source0 cannot trigger an event by itself: CFRunLoopSourceSignal marks it, and then CFRunLoopWakeUp has to wake the \
    loop so that it handles the event. A source1 has a port and wakes the loop's thread by itself.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R70 of Core Foundation: a signal wakes nobody. R77: a port or descriptor that is ready ends the sleep.
    """

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "in a run of 10 s, a source0 that is signalled at 2 s, while the loop sleeps",
      source0(bench) { rig, source in rig.time.at(.seconds(2)) { source.signal() } },
      requires: "not performed, marked: yes")
    outcome.observe(
      "the same, and a timer makes the loop turn at 6 s",
      source0(bench) { rig, source in
        rig.loop.add(Timer(timeInterval: 6, repeats: false) { _ in rig.note("the timer fires") }, forMode: .default)
        rig.time.at(.seconds(2)) { source.signal() }
      }, requires: "source0 at 6 s, marked: no")
    outcome.observe(
      "the loop is woken at 2 s, without a signal",
      source0(bench) { rig, _ in rig.time.at(.seconds(2)) { rig.loop.wakeUp() } },
      requires: "not performed, marked: no")
    outcome.observe(
      "the source0 is signalled and the loop is woken, both at 2 s",
      source0(bench) { rig, source in
        rig.time.at(.seconds(2)) {
          source.signal()
          rig.loop.wakeUp()
        }
      }, requires: "source0 at 2 s, marked: no")
    outcome.observe("a port that gets a message at 2 s", port(bench), requires: "source1 at 2 s")
    outcome.observe(
      "a descriptor source of a real pipe that gets a byte at 2 s", pipe(bench), requires: "source1 at 2 s")
    return outcome
  }

  private func source0(
    _ bench: Bench, _ prepare: @escaping @Sendable (Rig, RunLoop.Source) -> Void
  ) -> String {
    bench.onLoop { rig in
      let performed = Record()
      let source = RunLoop.Source { performed.write(callOut(rig)) }
      rig.loop.add(source, forMode: .default)
      prepare(rig, source)
      rig.loop.run(mode: .default, for: .seconds(10))
      let isMarked = source.isSignalled ? "yes" : "no"
      rig.note("the run is over; signalled = \(isMarked)")
      return "\(performed.count == 0 ? "not performed" : performed.text), marked: \(isMarked)"
    }
  }

  private func port(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let received = Record()
      let port = Port { _, _ in received.write(callOut(rig)) }
      rig.loop.add(port, forMode: .default)
      rig.time.at(.seconds(2)) { try? port.send(Port.Message()) }
      rig.loop.run(mode: .default, for: .seconds(10))
      return received.text
    }
  }

  private func pipe(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let received = Record()
      let pipe = Pipe()
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
        pipe.read()
        received.write(callOut(rig))
      }
      do {
        try rig.loop.add(source, forMode: .default)
      } catch {
        return "\(error)"
      }
      rig.time.at(.seconds(2)) { pipe.write() }
      rig.loop.run(mode: .default, for: .seconds(10))
      source.invalidate()
      return received.text
    }
  }

  /// Returns the kind of the current call-out, and the time.
  private func callOut(_ rig: Rig) -> String {
    let callOut = currentCallOut()
    rig.note("call-out: \(callOut)")
    return "\(callOut) at \(rig.seconds) s"
  }
}
