// SPDX-License-Identifier: Apache-2.0

@testable import RunLoopCore

/// Explores every interleaving of one loop and its posters, in search of a lost wake-up.
///
/// The loop and the posters are small programs. A step is what the real code does in one atomic access or under one
/// lock. All changes of the word use the real ``WakeState/applying(_:)``. From each distinct state, the checker tries
/// each program's next step. If no program can continue, the loop sleeps and the posters are done. Then no work may
/// be unseen, and no wake-up unanswered.
struct InterleavingChecker {
  /// The correct protocol, and protocols that lose wake-ups.
  enum Variant: CaseIterable {
    case correct
    /// The loop checks for work one last time before, rather than after, it announces its sleep.
    case recheckBeforeAnnounce
    /// A poster checks whether the loop sleeps before it pushes its work.
    case readBeforePush
    /// The loop goes to sleep whatever the word says.
    case sleepWithoutComparison
    /// A poster removes the sleeper from the word without waking it.
    case noWake
    /// The loop names the epoll set or gate at which it waits without checking whether it was removed from the word.
    case waitWithoutComparison
    /// A hosted loop closes its gate after its last check for work and after naming its gate.
    case closeAfterLook
    /// After its spin, a loop goes to sleep even if it was removed from the word meanwhile.
    case sleepAfterLookUnasked
    /// An opened gate is seen only if the host is waiting at that moment, as with `CFRunLoopWakeUp`.
    case openUnlatched

    /// The protocols of a loop that sleeps on the word by itself.
    static let ofWord: [Variant] = [.recheckBeforeAnnounce, .readBeforePush, .sleepWithoutComparison, .noWake]
    /// The protocols of a loop for which a host waits.
    static let ofHosted: [Variant] = [
      .readBeforePush, .noWake, .waitWithoutComparison, .closeAfterLook, .openUnlatched,
    ]
  }

  enum Operation {
    /// Pushes work and wakes the loop if it sleeps.
    case post
    /// Requests one more pass.
    case wakeUp
  }

  /// The result of exploring all interleavings.
  struct Verdict {
    var states = 0
    /// The number of states in which no program can continue.
    var ends = 0
    /// The largest number of passes in any interleaving.
    var mostPasses = 0
    /// The steps that lead to a sleep with unseen work or an unanswered wake-up.
    var lost: [String]?
    /// The steps that lead to an unnecessary pass.
    var needless: [String]?
  }

  let variant: Variant
  var sleeper = WakeState.Sleeper.futex
  /// Whether the loop spins on the word before it sleeps.
  var looks = false
  let posters: [[Operation]]

  func run() -> Verdict {
    var verdict = Verdict()
    var seen: Set<Situation> = []
    var path: [String] = []
    var start = Situation(posters: posters.count)
    start.word = start.word.applying(.beginRun).state
    walk(start, &seen, &path, &verdict)
    verdict.states = seen.count
    return verdict
  }

  private func walk(_ here: Situation, _ seen: inout Set<Situation>, _ path: inout [String], _ verdict: inout Verdict) {
    guard seen.insert(here).inserted else { return }
    verdict.mostPasses = max(verdict.mostPasses, here.passes)
    // Each post and each wake-up is a reason for one pass, and so is the run itself.
    if here.passes > 1 + here.reasons, verdict.needless == nil { verdict.needless = path }
    var isEnd = true
    if let (next, step) = loopStep(here) {
      isEnd = false
      path.append("loop: \(step)")
      walk(next, &seen, &path, &verdict)
      path.removeLast()
    }
    for index in posters.indices {
      guard let (next, step) = posterStep(here, index) else { continue }
      isEnd = false
      path.append("poster \(index): \(step)")
      walk(next, &seen, &path, &verdict)
      path.removeLast()
    }
    guard isEnd else { return }
    verdict.ends += 1
    if here.work > 0 || here.isUnanswered || here.word.isWoken, verdict.lost == nil { verdict.lost = path }
  }
}

/// The positions of all programs, and their shared state.
private struct Situation: Hashable {
  enum LoopStep: Hashable {
    case beginPass, takeWork, announce, lookAgain, name, look, sleep, blocked, forget, awaken, endAnnouncement, endWait
    /// Steps of a hosted loop.
    case settle, open, close, closeLate, discard
  }

  enum PosterStep: Hashable {
    case push, read, change(expected: WakeState), wake, open, done
  }

  struct Poster: Hashable {
    var step = PosterStep.push
    var operation = 0
    /// The word as read by a poster that reads too early.
    var early: WakeState?
  }

  var word = WakeState.idle
  var loop = LoopStep.beginPass
  /// The word that the loop announced and compares when it goes to sleep.
  var announced = WakeState.idle
  var posters: [Poster]
  /// Whether the table names the epoll set or gate at which the loop waits.
  var isNamed = false
  /// The epoll set's counter was written and no wait has returned for it yet, or the gate is open.
  var isCounted = false
  /// The gate was opened for a pass.
  var isReady = false
  /// Pushed work that the loop has not taken yet.
  var work = 0
  /// A pass was requested, and since then no pass has begun and no wait has ended.
  var isUnanswered = false
  var passes = 0
  var reasons = 0

  init(posters count: Int) {
    posters = Array(repeating: Poster(), count: count)
  }
}

// The loop: `makePasses` and `wait`, or a guest's methods.
extension InterleavingChecker {
  private func loopStep(_ here: Situation) -> (Situation, String)? {
    var next = here
    switch here.loop {
    case .beginPass:
      next.word = here.word.applying(.beginPass).state
      next.isUnanswered = false
      next.passes += 1
      next.loop = .takeWork
      return (next, "begins a pass")
    case .takeWork:
      next.work = 0
      next.loop = sleeper == .hosted ? .endWait : variant == .recheckBeforeAnnounce ? .lookAgain : .announce
      return (next, "takes \(here.work) pieces of work")
    case .announce:
      next.word = here.word.applying(.announceSleep(looks ? .looking : sleeper)).state
      next.announced = next.word
      let goesOn: Situation.LoopStep = variant == .recheckBeforeAnnounce ? .sleep : .lookAgain
      next.loop = next.word.isWoken ? .endAnnouncement : goesOn
      return (next, "announces its sleep")
    case .lookAgain:
      let goesOn: Situation.LoopStep =
        variant == .recheckBeforeAnnounce
        ? .announce : sleeper != .futex ? .name : looks ? .look : .sleep
      next.loop = here.work > 0 ? .endAnnouncement : goesOn
      return (next, "looks again and finds \(here.work)")
    case .name:
      let waits = variant == .waitWithoutComparison || here.word == here.announced
      next.isNamed = waits
      next.loop = !waits ? .awaken : variant == .closeAfterLook ? .closeLate : looks ? .look : .sleep
      return (next, waits ? "names what it waits at" : "finds the word changed")
    case .look:
      // Possible at any time: whatever arrives during the spin comes before this step.
      next.word = here.word.applying(.fallAsleep(sleeper)).state
      if variant == .sleepAfterLookUnasked { next.word = here.announced.applying(.fallAsleep(sleeper)).state }
      next.announced = next.word
      let sleeps = next.word.sleeper == sleeper
      next.loop = sleeps ? .sleep : sleeper == .epoll ? .forget : .awaken
      return (next, sleeps ? "has looked in vain" : "sees the word change")
    case .sleep where sleeper == .epoll:
      next.isCounted = false
      next.loop = here.isCounted ? .forget : .blocked
      return (next, here.isCounted ? "finds the counter" : "falls asleep")
    case .sleep where sleeper == .hosted:
      next.loop = here.isCounted ? .forget : .blocked
      return (next, here.isCounted ? "finds its gate open" : "is left to its host")
    case .forget:
      next.isNamed = false
      next.loop = .awaken
      return (next, "forgets what it waits at")
    case .sleep:
      let sleeps = variant == .sleepWithoutComparison || here.word == here.announced
      next.loop = sleeps ? .blocked : .awaken
      return (next, sleeps ? "falls asleep" : "does not fall asleep")
    case .blocked:
      return nil
    case .awaken:
      next.word = here.word.applying(.awaken).state
      next.loop = here.word.isWoken ? .endAnnouncement : variant == .recheckBeforeAnnounce ? .lookAgain : .announce
      if sleeper == .hosted { next.loop = here.isReady || here.word.isWoken ? .discard : .close }
      return (next, "is awake")
    case .endAnnouncement:
      next.word = here.word.applying(.awaken).state
      next.loop = sleeper == .hosted ? .open : .endWait
      return (next, "will not sleep")
    case .endWait:
      next.word = here.word.applying(.endWait).state
      next.isUnanswered = false
      next.loop = sleeper == .hosted ? .settle : .beginPass
      return (next, "ends its wait")
    case .settle, .open, .close, .closeLate, .discard:
      return hostedStep(here)
    }
  }

  /// A guest: `settle`, `fallAsleep` and `service`.
  private func hostedStep(_ here: Situation) -> (Situation, String) {
    var next = here
    switch here.loop {
    case .settle:
      next.word = here.word.applying(.beginPass).state
      next.loop = here.word.isLate ? .open : variant == .closeAfterLook ? .announce : .close
      return (next, "is done with its pass")
    case .open:
      next.isCounted = true
      next.isReady = true
      next.loop = .sleep
      return (next, "opens its gate for a pass")
    case .close, .closeLate:
      next.isCounted = false
      next.loop = here.loop == .close ? .announce : .sleep
      return (next, "closes its gate")
    default:
      next.isCounted = false
      next.isReady = false
      next.loop = .beginPass
      return (next, "closes its gate for a pass")
    }
  }
}

// A poster: `RunLoop.post`, `WakeWord.post` and `WakeWord.wakeUp`.
extension InterleavingChecker {
  private func posterStep(_ here: Situation, _ index: Int) -> (Situation, String)? {
    var next = here
    var poster = here.posters[index]
    guard poster.operation < posters[index].count else { return nil }
    let operation = posters[index][poster.operation]
    let step: String
    switch poster.step {
    case .push where operation == .wakeUp:
      next.reasons += 1
      poster.step = .change(expected: here.word)
      step = "reads the word for a wake-up"
    case .push where variant == .readBeforePush && poster.early == nil:
      poster.early = here.word
      step = "reads the word too early: \(here.word)"
    case .push:
      next.work += 1
      next.reasons += 1
      poster.step = .read
      step = "pushes work"
    case .read:
      let word = poster.early ?? here.word
      poster.early = nil
      poster.step = word.sleeper == .nobody ? .done : .change(expected: word)
      step = "reads the word: \(word)"
    case .change(let expected):
      guard here.word == expected else {
        // The exchange failed and returned the current word.
        poster.step = .change(expected: here.word)
        step = "finds the word changed"
        break
      }
      let (after, woken) = expected.applying(operation == .post ? .post(.unknown) : .wakeUp(.unknown))
      next.word = after
      if operation == .wakeUp { next.isUnanswered = true }
      poster.step = woken == .nobody || woken == .looking || variant == .noWake ? .done : .wake
      step = "changes the word to: \(after)"
    case .wake where sleeper == .epoll:
      // The write makes the loop's wait return, now or when it waits next.
      if here.isNamed {
        next.isCounted = here.loop != .blocked
        if here.loop == .blocked { next.loop = .forget }
      }
      poster.step = .done
      step = here.isNamed ? "writes to the counter" : "finds no epoll set"
    case .wake where sleeper == .hosted:
      poster.step = here.isNamed ? .open : .done
      step = here.isNamed ? "takes hold of the gate" : "finds no gate"
    case .open:
      if variant != .openUnlatched || here.loop == .blocked { next.isCounted = true }
      if here.loop == .blocked { next.loop = .forget }
      poster.step = .done
      step = "opens the gate"
    case .wake:
      if here.loop == .blocked { next.loop = .awaken }
      poster.step = .done
      step = "wakes the loop"
    case .done:
      poster.operation += 1
      poster.step = .push
      step = "is done"
    }
    next.posters[index] = poster
    return (next, step)
  }
}
