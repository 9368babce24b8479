// SPDX-License-Identifier: Apache-2.0

@testable import RunLoopCore

/// Walks through every interleaving of one loop and its posters, and looks for a wake-up that is lost.
///
/// The loop and the posters are small programs; a step of one is what the real code does in one atomic access, or under
/// one lock. Every change of the word is the real ``WakeState/applying(_:)``. From each state the checker tries each
/// program's next step, once for each distinct state. Where no program can go on, the loop sleeps and the posters are
/// done: then no work may lie unseen, and no wake-up unanswered.
struct InterleavingChecker {
  /// How the loop and the posters go about it: the right way, and ways that lose wake-ups.
  enum Variant: CaseIterable {
    case correct
    /// The loop looks for work for the last time before it announces its sleep.
    case recheckBeforeAnnounce
    /// A poster looks whether the loop sleeps before it pushes its work.
    case readBeforePush
    /// The loop goes to sleep whatever the word says.
    case sleepWithoutComparison
    /// A poster takes the sleeper out of the word and wakes nobody.
    case noWake
    /// The loop names the epoll set or gate that it waits at without looking whether somebody has taken it out of the
    /// word.
    case waitWithoutComparison
    /// A hosted loop closes its gate when it has looked for work for the last time, and has said where it waits.
    case closeAfterLook
    /// A loop that has looked goes to sleep whoever has taken it out of the word meanwhile.
    case sleepAfterLookUnasked
    /// An opened gate is only seen if the host waits at that moment, as `CFRunLoopWakeUp` is.
    case openUnlatched

    /// The ways of a loop that sleeps by itself on the word.
    static let ofWord: [Variant] = [.recheckBeforeAnnounce, .readBeforePush, .sleepWithoutComparison, .noWake]
    /// The ways of a loop that a host waits for.
    static let ofHosted: [Variant] = [
      .readBeforePush, .noWake, .waitWithoutComparison, .closeAfterLook, .openUnlatched,
    ]
  }

  enum Operation {
    /// Pushes work and wakes the loop if it sleeps.
    case post
    /// Asks for one more pass.
    case wakeUp
  }

  /// What a walk through all interleavings has found.
  struct Verdict {
    var states = 0
    /// The states in which no program can go on.
    var ends = 0
    /// The most passes that one interleaving has needed.
    var mostPasses = 0
    /// The steps that lead to a sleep with work unseen or a wake-up unanswered.
    var lost: [String]?
    /// The steps that lead to a pass without a reason.
    var needless: [String]?
  }

  let variant: Variant
  /// How the loop sleeps.
  var sleeper = WakeState.Sleeper.futex
  /// Whether the loop looks at the word before it sleeps.
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
    // Each post, each wake-up is a reason for one pass, and so is the run itself.
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

/// Where all programs are, and all that they share.
private struct Situation: Hashable {
  enum LoopStep: Hashable {
    case beginPass, takeWork, announce, lookAgain, name, look, sleep, blocked, forget, awaken, endAnnouncement, endWait
    /// Those of a hosted loop.
    case settle, open, close, closeLate, discard
  }

  enum PosterStep: Hashable {
    case push, read, change(expected: WakeState), wake, open, done
  }

  struct Poster: Hashable {
    var step = PosterStep.push
    var operation = 0
    /// What the poster that reads too early has read.
    var early: WakeState?
  }

  var word = WakeState.idle
  var loop = LoopStep.beginPass
  /// What the loop has announced and compares when it goes to sleep.
  var announced = WakeState.idle
  var posters: [Poster]
  /// Whether the table names the epoll set or gate that the loop waits at.
  var isNamed = false
  /// The counter in the epoll set has been written to, and no wait has returned for it; or the gate is open.
  var isCounted = false
  /// The gate was opened for a pass.
  var isReady = false
  /// Work that was pushed and that the loop has not taken.
  var work = 0
  /// Somebody has asked for one more pass, and none has begun since, nor has a wait ended.
  var isUnanswered = false
  var passes = 0
  var reasons = 0

  init(posters count: Int) {
    posters = Array(repeating: Poster(), count: count)
  }
}

// The loop: `makePasses` and `wait`, or those of a guest.
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
      // At any time: what comes while it looks comes before this step.
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
        // The exchange has failed and brings the word as it is.
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
      // The loop's thread returns for the write, or will when it waits.
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
