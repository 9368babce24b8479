// SPDX-License-Identifier: Apache-2.0

@testable import RunLoopCore

/// Explores every interleaving of threads that signal a source and loops that perform it, in search of a signal that
/// is lost or performed twice.
///
/// The source is in a mode of each loop, or enters it meanwhile. A step is what the real code does in one atomic
/// access of the item's word or under one lock, with the real bits. Each signaller calls `signal()` several times,
/// and each loop makes several passes, at any time. If no program can continue, the source is either not signalled,
/// or found by each loop's next pass.
struct SignalChecker {
  /// The correct protocol, and protocols that lose signals or perform them twice.
  enum Variant: CaseIterable {
    case correct
    /// A signaller checks whether the source is in all lists before it sets the mark.
    case readBeforeMark
    /// A signaller records that the source is in all lists after putting it there.
    case clearAfterListing
    /// A loop that removes the source from its list records that after checking the mark, in another access.
    case unlistInTwoSteps
    /// A source that enters a mode is checked for a signal before signalling threads can see the mode.
    case askBeforeEntering
    /// A loop checks the mark and clears it in two separate accesses.
    case claimInTwoSteps
  }

  /// The result of exploring all interleavings.
  struct Verdict {
    var states = 0
    var ends = 0
    /// The steps after which a signalled source would not be found.
    var lost: [String]?
    /// The steps after which the source was performed more often than it was signalled.
    var twice: [String]?
    /// All possible totals of performances.
    var performed: Set<Int> = []
  }

  let variant: Variant
  let signals: [Int]
  let passes: [Int]
  /// The loop whose mode the source enters meanwhile; it is in the other loops' modes from the beginning.
  var entered: Int?

  func run() -> Verdict {
    var verdict = Verdict()
    var seen: Set<Signalling> = []
    var path: [String] = []
    walk(Signalling(signallers: signals, loops: passes, entered: entered), &seen, &path, &verdict)
    verdict.states = seen.count
    return verdict
  }

  private func walk(_ here: Signalling, _ seen: inout Set<Signalling>, _ path: inout [String], _ verdict: inout Verdict)
  {
    guard seen.insert(here).inserted else { return }
    if here.performed > here.marked, verdict.twice == nil { verdict.twice = path }
    var isEnd = true
    func go(_ next: (Signalling, String)?, _ who: String) {
      guard let (next, step) = next else { return }
      isEnd = false
      path.append("\(who): \(step)")
      walk(next, &seen, &path, &verdict)
      path.removeLast()
    }
    for index in signals.indices { go(signallerStep(here, index), "signaller \(index)") }
    for index in passes.indices { go(loopStep(here, index), "loop \(index)") }
    go(enteringStep(here), "entering")
    guard isEnd else { return }
    verdict.ends += 1
    verdict.performed.insert(here.performed)
    let isFound = here.loops.allSatisfy { $0.isListed && $0.mayHaveSignalled }
    if here.isMarked, !isFound, verdict.lost == nil { verdict.lost = path }
  }
}

/// The positions of all programs, and their shared state.
private struct Signalling: Hashable {
  enum SignallerStep: Hashable {
    case look, mark(UInt32?), lock, clear, list(loop: Int), unlock
  }

  struct Signaller: Hashable {
    var left: Int
    var step = SignallerStep.look
  }

  enum LoopStep: Hashable {
    case look, findOnly, claimOnly, claimTaking, collect, unlistLater, giveUp, claim
  }

  struct Loop: Hashable {
    var left: Int
    var step = LoopStep.look
    /// The source is in the loop's mode.
    var isMember: Bool
    /// The source is in the mode's list of signalled sources.
    var isListed = false
    var mayHaveSignalled = false
    /// The lock of the loop's table is held for more than one step.
    var isLocked = false
  }

  enum EnteringStep: Hashable {
    case lock, tell, ask, insert(isSignalled: Bool), askFirst, done
  }

  var word = HandlerReference.Bits.unlisted
  var signallers: [Signaller]
  var loops: [Loop]
  var entering: EnteringStep
  var isLocked = false
  /// The number of times that the mark was set, and that a loop took it.
  var marked = 0
  var performed = 0

  var isMarked: Bool { word & HandlerReference.Bits.mark != 0 }

  init(signallers: [Int], loops: [Int], entered: Int?) {
    self.signallers = signallers.map { Signaller(left: $0) }
    self.loops = loops.indices.map { Loop(left: loops[$0], isMember: $0 != entered) }
    entering = entered == nil ? .done : .lock
  }
}

// `signal()` and `list()`.
extension SignalChecker {
  private func signallerStep(_ here: Signalling, _ index: Int) -> (Signalling, String)? {
    var next = here
    var signaller = here.signallers[index]
    guard signaller.left > 0 else { return nil }
    func end() {
      signaller.left -= 1
      signaller.step = .look
    }
    let step: String
    switch signaller.step {
    case .look:
      step = here.isMarked ? "finds it signalled" : "finds it not signalled"
      if here.isMarked { end() } else { signaller.step = .mark(variant == .readBeforeMark ? here.word : nil) }
    case .mark(let read):
      let before = read ?? here.word
      if !here.isMarked { next.marked += 1 }
      next.word |= HandlerReference.Bits.mark
      step = "signals it"
      if before & HandlerReference.Bits.unlisted != 0 { signaller.step = .lock } else { end() }
    case .lock:
      guard !here.isLocked else { return nil }
      next.isLocked = true
      signaller.step = variant == .clearAfterListing ? .list(loop: 0) : .clear
      step = "locks the source"
    case .clear:
      next.word &= ~HandlerReference.Bits.unlisted
      signaller.step = variant == .clearAfterListing ? .unlock : .list(loop: 0)
      step = "says that it stands in all lists"
    case .list(let loop):
      guard !here.loops[loop].isLocked else { return nil }
      if here.loops[loop].isMember {
        next.loops[loop].isListed = true
        next.loops[loop].mayHaveSignalled = true
      }
      let isLast = loop + 1 == here.loops.count
      signaller.step = !isLast ? .list(loop: loop + 1) : variant == .clearAfterListing ? .clear : .unlock
      step = "lists it in loop \(loop)"
    case .unlock:
      next.isLocked = false
      end()
      step = "unlocks the source"
    }
    next.signallers[index] = signaller
    return (next, step)
  }
}

// `performSources`, `claimSignal()` and `unlist()`.
extension SignalChecker {
  private func loopStep(_ here: Signalling, _ index: Int) -> (Signalling, String)? {
    var next = here
    var loop = here.loops[index]
    guard loop.left > 0 else { return nil }
    func end() {
      loop.left -= 1
      loop.step = .look
    }
    func claim(orElse other: Signalling.LoopStep?) -> String {
      if variant == .claimInTwoSteps, here.isMarked {
        loop.step = .claimTaking
        return "finds it signalled"
      }
      if here.isMarked {
        next.word &= ~HandlerReference.Bits.mark
        next.performed += 1
      }
      if !here.isMarked, let other { loop.step = other } else { end() }
      return here.isMarked ? "performs it" : "finds it performed"
    }
    let step: String
    switch loop.step {
    case .look:
      step = loop.mayHaveSignalled ? "begins a pass" : "makes a pass for nothing"
      if loop.mayHaveSignalled { loop.step = .findOnly } else { end() }
    case .findOnly:
      guard !loop.isLocked else { return nil }
      loop.step = loop.isListed ? .claimOnly : .collect
      step = loop.isListed ? "finds it in its list" : "finds its list empty"
    case .claimOnly: step = claim(orElse: .collect)
    case .claimTaking:
      next.word &= ~HandlerReference.Bits.mark
      next.performed += 1
      end()
      step = "performs it"
    case .collect:
      guard !loop.isLocked else { return nil }
      loop.isLocked = true
      loop.step = .giveUp
      step = "looks through its list"
      guard loop.isListed else { break }
      if here.isMarked {
        loop.step = .claim
      } else if variant == .unlistInTwoSteps {
        loop.step = .unlistLater
      } else {
        next.word |= HandlerReference.Bits.unlisted
        loop.isListed = false
      }
    case .unlistLater:
      next.word |= HandlerReference.Bits.unlisted
      loop.isListed = false
      loop.step = .giveUp
      step = "takes it out of its list"
    case .giveUp:
      loop.mayHaveSignalled = false
      loop.isLocked = false
      step = "has an empty list"
      end()
    case .claim:
      loop.isLocked = false
      step = claim(orElse: nil)
    }
    next.loops[index] = loop
    return (next, step)
  }

  // `Source.enter`: under the source's lock and the loop's.
  private func enteringStep(_ here: Signalling) -> (Signalling, String)? {
    guard let entered else { return nil }
    var next = here
    switch here.entering {
    case .done: return nil
    case .lock:
      guard !here.isLocked, !here.loops[entered].isLocked else { return nil }
      next.isLocked = true
      next.loops[entered].isLocked = true
      next.entering = variant == .askBeforeEntering ? .askFirst : .tell
      return (next, "locks both")
    case .askFirst:
      next.entering = .insert(isSignalled: here.isMarked)
      return (next, "asks whether it is signalled")
    case .tell:
      next.word |= HandlerReference.Bits.unlisted
      next.entering = .ask
      return (next, "says that it does not stand in all lists")
    case .ask:
      next.entering = .insert(isSignalled: here.isMarked)
      return (next, "asks whether it is signalled")
    case .insert(let isSignalled):
      if variant == .askBeforeEntering { next.word |= HandlerReference.Bits.unlisted }
      next.loops[entered].isMember = true
      next.loops[entered].isListed = isSignalled
      if isSignalled { next.loops[entered].mayHaveSignalled = true }
      next.loops[entered].isLocked = false
      next.isLocked = false
      next.entering = .done
      return (next, isSignalled ? "enters as signalled" : "enters")
    }
  }
}
