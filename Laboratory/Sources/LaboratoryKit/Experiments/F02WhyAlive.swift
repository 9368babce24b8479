// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads

/// F2: the reasons that keep a thread alive, reported by its loop.
struct WhyAlive: Experiment {
  let id = "F2"
  let title = "Why a thread does not end"
  let articles: [Article] = [.qiu, .yongzhen]
  let claim = """
    A thread whose loop was given something does not end any more. What it is that keeps the thread, and who has added it, is \
    for the reader of the code to find.
    """
  let needsRecords = true
  let verdict = Verdict.corrected(
    """
    The loop has what keeps it in the mode that it runs in: with the places where it was added noted, it can be asked, and \
    when the last of the list has gone, the run ends.
    """)
  let evidence = """
    R25 of Core Foundation: a mode with a source, a port or a timer is not empty. The articles' threads end when what they \
    have added is taken out again.
    """
  let difference = Difference.addition("Core Foundation describes a loop without saying who has added what is in it.")

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      let level = Instruments.hold(.watch)
      defer { level.release() }
      // Accepts the tool's request.
      do { try Instruments.listen() } catch { bench.log.write("\(error)") }
      var outcome = Outcome()
      let items = Items()
      let thread = WatchedThread(on: bench) { watch in
        let loop = watch.loop
        watch.whenCut { items.removeAll() }
        items.addPort(loop)
        items.addTimer(loop)
        loop.runUntilStopped()
      }
      thread.start()
      let watch = thread.watch
      watch.settle()
      // The mode also has an observer, which keeps nothing alive.
      watch.perform { RunLoop.current.add(RunLoop.Observer(activities: .exit) { _, _ in }, forMode: .default) }
      watch.settle()
      watch.say("stays because of \(kinds(watch))")
      outcome.observe(
        "what keeps the thread, and who has added it", reasons(watch),
        requires: "port by addPort(_:), timer by addTimer(_:)")
      _ = try? thread.perform {}
      watch.settle()
      outcome.observe(
        "after work was handed to it", kinds(watch), requires: "port, timer, perform")
      items.removeTimer()
      watch.settle()
      outcome.observe("without the timer", kinds(watch), requires: "port, perform")
      outcome.observe("the thread", thread.flags, requires: "isExecuting = 1, isFinished = 0")
      thread.end()
      outcome.observe("when its run has been ended", kinds(watch), requires: "nothing")
      return outcome
    }
  }

  private func list(_ watch: Watch) -> [KeepAliveReason] {
    watch.loopIfAlive.map(Instruments.reasons(keeping:)) ?? []
  }

  private func kinds(_ watch: Watch) -> String { joined(list(watch).map(\.kind.rawValue)) }

  private func reasons(_ watch: Watch) -> String {
    do {
      let answer: WhyAliveAnswer = try Tool.ask("why-alive", "\(getpid())")
      let loop = answer.loops.first { $0.tid == watch.threadNumber }
      return joined(
        (loop?.reasons ?? []).map { reason in
          "\(reason.kind) by \(reason.added?.function.split(separator: ".").last ?? "nobody")"
        })
    } catch {
      return "\(error)"
    }
  }

  private func joined(_ words: [String]) -> String { words.isEmpty ? "nothing" : words.joined(separator: ", ") }
}

/// The output of `runloop why-alive --json`.
private struct WhyAliveAnswer: Decodable {
  struct Loop: Decodable {
    let tid: Int32
    let reasons: [Reason]
  }

  struct Reason: Decodable {
    let kind: String
    let added: Place?
  }

  struct Place: Decodable {
    let function: String
  }

  let loops: [Loop]
}

/// Adds the items that keep a thread alive.
private final class Items: Sendable {
  private let port = Port()
  private let timer = Timer(timeInterval: 3600, repeats: true) { _ in }

  @inline(never)
  func addPort(_ loop: RunLoop) {
    loop.add(port, forMode: .default)
    withExtendedLifetime(self) {}
  }

  @inline(never)
  func addTimer(_ loop: RunLoop) {
    loop.add(timer, forMode: .default)
    withExtendedLifetime(self) {}
  }

  func removeTimer() { timer.invalidate() }

  func removeAll() {
    port.invalidate()
    timer.invalidate()
  }
}
