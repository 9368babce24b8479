// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// D9: the fire dates that a busy loop misses, and the use of a tolerance.
struct TimerDates: Experiment {
  let id = "D9"
  let title = "Missed dates and tolerance of timers"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A timer is registered for its dates, and the loop wakes at each of them. Xilankong adds: to save resources the loop \
    is not exact, and the tolerance says how late it may be; a date that is missed because of a long task is skipped, not \
    made up, like a bus: who misses the one at 10:10 waits for the one at 10:20.
    """
  let verdict = Verdict.corrected(
    """
    Missed dates are not made up and the phase is kept. But the first date missed is not skipped: the timer fires once, \
    late, as soon as the loop is free, and only the other missed dates are left out. Without a tolerance the loop is as \
    exact as it can be; a tolerance lets timers share a wake-up.
    """)
  let evidence = """
    R97 of Core Foundation: a repeating timer keeps its phase and skips what it has missed but for one. R99f of \
    Apple's: tolerances let timers share a wake-up.
    """
  let difference = Difference.numbered(
    ["M8"],
    """
    Tolerances work on Linux too, where Core Foundation's are always 0; the wake-ups saved are counted.
    """)

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "a timer every ten minutes from 10:00, the loop being busy from 10:05 to 10:08",
      fires(bench, busyFrom: 5, until: 8), requires: "10:00 10:10 10:20 10:30 10:40 10:50")
    outcome.observe(
      "busy from 10:05 to 10:15", fires(bench, busyFrom: 5, until: 15),
      requires: "10:00 10:15 10:20 10:30 10:40 10:50")
    outcome.observe(
      "busy from 10:05 to 10:35", fires(bench, busyFrom: 5, until: 35), requires: "10:00 10:35 10:40 10:50")
    outcome.observe(
      "three timers of 60 s, 10 s apart, for ten minutes without tolerance", wakeUps(bench, tolerance: 0),
      requires: "30 fires at 30 wake-ups, 0 saved, up to 0 s late")
    outcome.observe(
      "with a tolerance of 20 s", wakeUps(bench, tolerance: 20),
      requires: "30 fires at 10 wake-ups, 20 saved, up to 20 s late")
    return outcome
  }

  /// Returns when a timer of ten minutes fires within 55 minutes, on a clock that begins at ten.
  private func fires(_ bench: Bench, busyFrom start: Int, until end: Int) -> String {
    bench.onLoop { rig in
      let fires = Record()
      let timer = Timer(deadline: rig.now, interval: .seconds(600)) { _ in
        rig.note("the timer fires")
        fires.write("10:\(padded(Int64(rig.seconds / 60), to: 2))")
      }
      rig.loop.add(timer, forMode: .default)
      rig.time.at(.seconds(start * 60)) {
        rig.loop.perform {
          rig.note("a long task begins")
          rig.time.spend(.seconds((end - start) * 60))
          rig.note("the long task has ended")
        }
      }
      rig.loop.run(mode: .default, for: .seconds(55 * 60))
      return fires.text
    }
  }

  /// Returns how often three timers fire and wake the loop.
  private func wakeUps(_ bench: Bench, tolerance: Double) -> String {
    bench.onLoop { rig in
      let lateness = Record()
      let sleeps = rig.countSleeps()
      for offset in [10, 20, 30] {
        let first = rig.now.advanced(by: .seconds(offset))
        let timer = Timer(deadline: first, interval: .seconds(60)) { timer in
          let late = timer.deadline.duration(to: rig.now).components.seconds
          rig.note("the timer that began at \(offset) s fires, \(late) s late")
          lateness.write("\(late)")
        }
        rig.loop.add(timer, forMode: .default)
        timer.tolerance = tolerance
      }
      rig.loop.run(mode: .default, for: .seconds(600))
      let latest = lateness.lines.compactMap { Int($0) }.max() ?? -1
      // The run's own deadline ends the last sleep.
      return """
        \(lateness.count) fires at \(sleeps.count - 1) wake-ups, \
        \(rig.loop.statistics.savedWakeUpCount) saved, up to \(latest) s late
        """
    }
  }
}
