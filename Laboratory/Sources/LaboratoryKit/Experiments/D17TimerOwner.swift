// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// D17: the view controller that a repeating timer never releases.
struct TimerOwner: Experiment {
  let id = "D17"
  let title = "A repeating timer and its owner"
  let articles: [Article] = [.xilankong]
  let claim = "A repeating timer and the object that made it hold each other, so that neither is ever released."
  let verdict = Verdict.confirmed
  let evidence = """
    Foundation: a repeating timer holds its target or block, and the loop holds the timer, until the timer is \
    invalidated.
    """

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "the block holds the owner, and the owner the timer; the last other reference to the owner goes",
      lives(bench) { $0.startHoldingOwner() },
      requires: "owner kept, timer kept; invalidated: owner released, timer released")
    outcome.observe(
      "the same, but the owner does not hold the timer; the loop does",
      lives(bench) { $0.startHoldingOwner(keepsTimer: false) },
      requires: "owner kept, timer kept; invalidated: owner released, timer released")
    outcome.observe(
      "the block holds the owner weakly, and the owner's deinit invalidates the timer",
      lives(bench) { $0.startHoldingOwnerWeakly() },
      requires: "owner released, timer released; invalidated: owner released, timer released")
    return outcome
  }

  private func lives(_ bench: Bench, _ start: @escaping @Sendable (Owner) -> Timer) -> String {
    bench.onLoop { rig in
      rig.keepAlive()
      weak var owner: Owner?
      weak var timer: Timer?
      do {
        let made = Owner { rig.note($0) }
        owner = made
        timer = start(made)
        rig.loop.run(mode: .default, for: .milliseconds(2500))
      }
      func state() -> String {
        "owner \(owner == nil ? "released" : "kept"), timer \(timer == nil ? "released" : "kept")"
      }
      let before = state()
      rig.note(before)
      timer?.invalidate()
      rig.note("invalidated: \(state())")
      return "\(before); invalidated: \(state())"
    }
  }
}

/// A stand-in for the articles' view controller: its repeating timer has a block that uses it.
private final class Owner: Sendable {
  private let say: @Sendable (String) -> Void
  private let timer = Mutex<Timer?>(nil)

  init(say: @escaping @Sendable (String) -> Void) {
    self.say = say
  }

  func startHoldingOwner(keepsTimer: Bool = true) -> Timer {
    let timer = Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { _ in self.wantTodo() }
    if keepsTimer { self.timer.withLock { $0 = timer } }
    return timer
  }

  func startHoldingOwnerWeakly() -> Timer {
    let timer = Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { [weak self] _ in self?.wantTodo() }
    self.timer.withLock { $0 = timer }
    return timer
  }

  private func wantTodo() { say("wantTodo") }

  deinit {
    say("the owner is released")
    timer.withLock { $0 }?.invalidate()
  }
}
