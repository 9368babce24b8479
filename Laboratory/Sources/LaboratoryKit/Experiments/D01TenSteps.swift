// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// D1: the ten steps in the loop's own trace.
struct TenSteps: Experiment {
  let id = "D1"
  let title = "The ten steps of a pass"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    1 entry, 2 beforeTimers (timers are about to be handled), 3 beforeSources, blocks, 4 source0, blocks, 5 a source1 that \
    is ready is handled at once, 6 beforeWaiting, 7 sleep, 8 afterWaiting, 9 the timer, main queue or source1 that woke \
    the loop, blocks, 10 exit.
    """
  let verdict = Verdict.corrected(
    """
    The steps and their order stand, but: step 2 runs no timer, as one that is due runs in step 9; a pass that performed a \
    source0 leaves out steps 6 to 8, and a later one sleeps; step 5 handles no source1 (in the articles' own code it asks \
    for the main queue only), so a port that is ready goes through 6 and 8, without the sleep, to 9; and step 9 serves one \
    kind of event in each pass.
    """)
  let evidence = """
    R2 to R5 of Core Foundation, and its source, which the articles print: step 5 asks for the main queue's port \
    only.
    """
  let difference = Difference.numbered(
    ["M19"],
    """
    The kind of event that step 9 serves takes turns; in Core Foundation the kernel's order decides.
    """)

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "a block, a source0 that posts a block, and in 2 s a timer that posts one and stops the run", everything(bench),
      requires: """
        entry beforeTimers beforeSources block source0 block \
        beforeTimers beforeSources beforeWaiting sleep afterWaiting timer block exit: stopped
        """)
    outcome.observe(
      "a timer that is due and a port with a message, both before the run", readyBeforehand(bench),
      requires: """
        entry beforeTimers beforeSources beforeWaiting afterWaiting timer \
        beforeTimers beforeSources beforeWaiting afterWaiting source1 exit: stopped
        """)
    outcome.observe(
      "a port that gets its message after 2 s", wokenByPort(bench),
      requires: "entry beforeTimers beforeSources beforeWaiting sleep afterWaiting source1 exit: stopped")
    return outcome
  }

  private func everything(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let loop = rig.loop
      loop.perform {}
      let source = RunLoop.Source { loop.perform {} }
      loop.add(source, forMode: .default)
      source.signal()
      let timer = Timer(timeInterval: 2, repeats: false) { _ in
        loop.perform {}
        loop.stop()
      }
      loop.add(timer, forMode: .default)
      return runAndTell(rig)
    }
  }

  private func readyBeforehand(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let loop = rig.loop
      loop.add(Timer(deadline: rig.now) { _ in }, forMode: .default)
      let port = Port { _, _ in loop.stop() }
      loop.add(port, forMode: .default)
      try? port.send(Port.Message())
      return runAndTell(rig)
    }
  }

  private func wokenByPort(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let loop = rig.loop
      let port = Port { _, _ in loop.stop() }
      loop.add(port, forMode: .default)
      rig.time.at(.seconds(2)) { try? port.send(Port.Message()) }
      return runAndTell(rig)
    }
  }

  private func runAndTell(_ rig: Rig) -> String {
    rig.whenSlept { rig.time.log.write("sleep") }
    let result = rig.loop.run(mode: .default, for: .seconds(10))
    let steps = Step.all(in: rig.time.log.text)
    for step in steps { rig.log.write(step.comment) }
    rig.note("The run has ended: \(result).")
    return "\(steps.map(\.rawValue).joined(separator: " ")): \(result)"
  }
}

/// A step of a pass, by Core Foundation's name.
private enum Step: String {
  case entry, beforeTimers, beforeSources, block, source0, beforeWaiting, sleep, afterWaiting, timer, source1, exit

  /// Returns the steps of a time's log, where a sleep is written after the activity that follows it.
  static func all(in log: String) -> [Step] {
    let letters: [Substring: Step] = [
      "E": .entry, "BT": .beforeTimers, "BS": .beforeSources, "B": .block, "S0": .source0, "BW": .beforeWaiting,
      "sleep": .sleep, "AW": .afterWaiting, "T": .timer, "S1": .source1, "X": .exit,
    ]
    var steps = log.split(separator: " ").compactMap { letters[$0] }
    for index in steps.indices where steps[index] == .sleep && index > 0 { steps.swapAt(index - 1, index) }
    return steps
  }

  /// The articles' explanation of the step, as far as it is correct, and the phase in our article and code.
  var comment: String {
    switch self {
    case .entry: "/// 1. The observers are told: the run begins."
    case .beforeTimers: "/// 2. The observers are told: before timers. No timer runs yet. (Phase 2.)"
    case .beforeSources: "/// 3. The observers are told: before sources. (Phase 3.)"
    case .block: "///    A block runs. (Phase 4, 6 or 12.)"
    case .source0: "/// 4. A source0 is performed. (Phase 5.)"
    case .beforeWaiting: "/// 6. The observers are told: about to wait. (Phase 8.)"
    case .sleep: "/// 7. The thread sleeps. (Phase 9.)"
    case .afterWaiting: "/// 8. The observers are told: the wait is over. (Phase 10.)"
    case .timer: "/// 9. A timer is due and fires. (Phase 11.)"
    case .source1: "/// 9. A source1 has a message, which is received. (Phase 11.)"
    case .exit: "/// 10. The observers are told: the run ends."
    }
  }
}
