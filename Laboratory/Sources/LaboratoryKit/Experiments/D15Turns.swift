// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopInstruments
import RunLoopTesting

/// D15: Xilankong's experiment, which observes the loop's sleeps and wake-ups.
struct Turns: Experiment {
  let id = "D15"
  let title = "How often an idle loop turns"
  let articles: [Article] = [.xilankong]
  let claim = """
    Observers of beforeWaiting and afterWaiting show that the loop turns once a minute if nobody touches the device, and \
    that an event makes it turn once, from waking to sleeping again. A timer of 1 ms keeps it from sleeping.
    """
  let verdict = Verdict.corrected(
    """
    The minute is not the loop's own: something that is due every minute makes it turn every minute, and with nothing due \
    it does not turn at all. One event is one turn, as claimed. A timer of 1 ms does not keep the loop awake: it sleeps \
    between any two fires.
    """)
  let evidence = """
    R45 and R50 of Core Foundation: a wake-up is one pass, and without one, a timer or a source the loop sleeps \
    on.
    """

  // A wake-up without work announces no activity, but the loop's record contains each sleep.
  let needsRecords = true

  func run(on bench: Bench) -> Outcome {
    let level = Instruments.hold(.record)
    defer { level.release() }
    var outcome = Outcome()
    outcome.observe(
      "in ten minutes and a half with a timer of a minute",
      turns(bench, for: .seconds(630)) { rig in
        rig.loop.add(Timer(timeInterval: 60, repeats: true) { _ in }, forMode: .default)
      }, requires: "turns: 10, sleeps: 11")
    outcome.observe(
      "in the same time with nothing due", turns(bench, for: .seconds(630)) { rig in rig.keepAlive() },
      requires: "turns: 0, sleeps: 1")
    outcome.observe(
      "with one event, a block from outside",
      turns(bench, for: .seconds(630)) { rig in
        rig.keepAlive()
        rig.time.at(.seconds(100)) { rig.loop.perform { rig.note("actionTwo") } }
      }, requires: "turns: 1, sleeps: 2")
    outcome.observe(
      "with one event, a source that is signalled",
      turns(bench, for: .seconds(630)) { rig in
        let source = RunLoop.Source { rig.note("actionFour") }
        rig.loop.add(source, forMode: .default)
        rig.time.at(.seconds(100)) {
          source.signal()
          rig.loop.wakeUp()
        }
      }, requires: "turns: 1, sleeps: 2")
    outcome.observe(
      "in 10.5 ms with a timer of 1 ms",
      turns(bench, for: .microseconds(10_500)) { rig in
        rig.loop.add(Timer(timeInterval: 0.001, repeats: true) { _ in }, forMode: .default)
      }, requires: "turns: 10, sleeps: 11")
    return outcome
  }

  /// Returns how often the calling thread's loop has slept, as "runloop postmortem" reads it from this process's
  /// record.
  private func sleeps() -> String {
    do {
      let directory = try TemporaryDirectory()
      defer { directory.remove() }
      let record = directory.path + "/record"
      try Instruments.writeRecord(to: record, last: .seconds(3600))
      let answer: PostmortemAnswer = try Tool.ask("postmortem", record)
      let thread = answer.threads.first { $0.tid == callingThread }
      return "\(thread?.last.count { $0.kind == "sleep" } ?? 0)"
    } catch {
      return "\(error)"
    }
  }

  /// Returns how often the loop proceeds from afterWaiting to beforeWaiting again, and how often it sleeps.
  private func turns(
    _ bench: Bench, for duration: Duration, _ prepare: @escaping @Sendable (Rig) -> Void
  ) -> String {
    bench.onLoop { rig in
      let stages = Record()
      for activity in [RunLoop.Activity.beforeWaiting, .afterWaiting] {
        rig.observe(activity, mode: .common) { _, activity in
          rig.note("observer call-out -> name = \(activity.name)")
          stages.write(activity.name)
        }
      }
      prepare(rig)
      rig.loop.run(mode: .default, for: duration)
      let lines = stages.lines
      let turns = zip(lines, lines.dropFirst()).count { $0 == "afterWaiting" && $1 == "beforeWaiting" }
      return "turns: \(turns), sleeps: \(sleeps())"
    }
  }
}

/// The output of `runloop postmortem --json`.
private struct PostmortemAnswer: Decodable {
  struct Thread: Decodable {
    let tid: Int32
    let last: [Item]
  }

  struct Item: Decodable {
    let kind: String
  }

  let threads: [Thread]
}
