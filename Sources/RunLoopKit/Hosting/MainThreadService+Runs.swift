// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

/// A run of Core Foundation's main loop.
enum HostRun {
  /// One in which a run of ours waits, or looks.
  case own(RunLoopCore.RunLoop.Mode, hasBegun: Bool)
  /// Somebody else's, in which ours is served.
  case turn(Turn)
  /// Somebody else's, in which ours is not served.
  case unserved(ServedMode)
}

/// Our loop's guest for one run of Core Foundation's.
final class Turn {
  let mode: ServedMode
  let gate: TurnGate
  let guest: RunLoopCore.RunLoop.Guest

  init?(_ mode: ServedMode, _ loop: RunLoopCore.RunLoop) {
    let gate = TurnGate(mode, loop)
    guard let guest = RunLoopCore.RunLoop.Guest(automaticAt: gate, mode: mode.name) else { return nil }
    self.mode = mode
    self.gate = gate
    self.guest = guest
  }

  /// Whether ours has something to do.
  ///
  /// One source is handled in a run that returns after one.
  var isDue: Bool { (gate.isOpen || guest.isDue) && !mode.items.isHandledPending }

  func serve() {
    if guest.service() == .handledSource { mode.items.noteHandled() }
    // The last of ours may be gone: then Core Foundation is to see so before it sleeps.
    guard mode.keepsAlive else { return }
    mode.updateMark(of: .current)
    if !mode.keepsAlive { CFRunLoopWakeUp(mode.runLoop) }
  }

  func end() {
    guest.invalidate()
    mode.items.clear()
  }
}

// The runs of Core Foundation's main loop. The main thread.
extension MainThreadService {
  /// A run of Core Foundation's loop in which one of ours waits, or looks.
  func runOwn<Result>(_ mode: RunLoopCore.RunLoop.Mode, _ body: () -> Result) -> Result {
    let depth = runs.count
    runs.append(.own(mode, hasBegun: false))
    let result = body()
    runs.removeSubrange(depth...)
    settleHost()
    return result
  }

  func runBegins(in mode: ServedMode) {
    guard !isEndingTurn else { return }
    if case .own(let name, hasBegun: false)? = runs.last {
      runs[runs.count - 1] = .own(name, hasBegun: true)
    } else {
      beginTurn(in: mode)
    }
  }

  private func beginTurn(in mode: ServedMode) {
    host?.othersRunBegins(in: mode.name)
    runs.append(.unserved(mode))
    let loop = RunLoopCore.RunLoop.current
    guard isOn, loop.mainService === self else { return }
    // The main dispatch queue is Core Foundation's from now on.
    if let runLoop, !loop.hasExplicitGuest { setHost(for: loop, in: runLoop) }
    guard host != nil, let turn = Turn(mode, loop) else { return }
    host?.remove(from: mode.name)
    runs[runs.count - 1] = .turn(turn)
    let wasMarked = mode.keepsAlive
    mode.updateMark(of: loop)
    // The last of ours may have been removed since: then the run is to find itself empty. A wake-up in each run would
    // take the place of something else that is ready: a run of one pass serves one port.
    if wasMarked, !mode.keepsAlive { CFRunLoopWakeUp(mode.runLoop) }
  }

  func runReaches(_ activity: CFRunLoopActivity, in mode: ServedMode) {
    guard !isEndingTurn else { return }
    if activity == .beforeSources, !isKnown(mode) { beginTurn(in: mode) }
    guard let turn = turn(in: mode) else { return }
    mode.items.forgetHandled()
    switch activity {
    case .beforeWaiting: turn.gate.hostWillWait(isDue: turn.isDue)
    case .afterWaiting:
      turn.gate.hostHasWaited()
      if turn.isDue { mode.serveSoon() }
    default: if turn.isDue { mode.serveSoon() }
    }
  }

  func runEnds(in mode: ServedMode) {
    guard !isEndingTurn else { return }
    switch runs.last {
    case .turn(let turn)? where turn.mode === mode:
      isEndingTurn = true
      turn.end()
      isEndingTurn = false
      runs.removeLast()
      if case .turn(let outer)? = runs.last { outer.gate.resume() }
      mode.updateMark(of: .current)
    case .unserved(let other)? where other === mode: runs.removeLast()
    default: return
    }
    settleHost()
  }

  func serve(_ mode: ServedMode) {
    guard !isEndingTurn, let turn = turn(in: mode) else { return }
    turn.serve()
    serveMainQueue(in: turn)
  }

  /// Drains the main dispatch queue after every fourth service of ours, if it has work.
  ///
  /// A run of Core Foundation's that returns after a source asks the queue last, and serves one thing that is ready: if
  /// ours always has a descriptor that is, it never comes to the queue.
  private func serveMainQueue(in turn: Turn) {
    servicesSinceQueue += 1
    guard servicesSinceQueue >= 4 else { return }
    servicesSinceQueue = 0
    let loop = RunLoopCore.RunLoop.current
    guard loop.hasMainQueueWork, rlk_begin_draining() != 0 else { return }
    loop.runMainQueue()
    rlk_end_draining()
    // As where Core Foundation drains it: a run that is to return after a source does.
    if case .turn(let current)? = runs.last, current === turn { turn.mode.items.noteHandled() }
  }

  func deadlineCame(in mode: ServedMode) {
    guard let turn = turn(in: mode) else { return }
    turn.gate.deadlineCame()
    mode.serveSoon()
  }

  private func turn(in mode: ServedMode) -> Turn? {
    guard case .turn(let turn)? = runs.last, turn.mode === mode else { return nil }
    return turn
  }

  /// Whether the innermost run that is known is one of this mode; if not, the observers have come after its entry.
  private func isKnown(_ mode: ServedMode) -> Bool {
    switch runs.last {
    case .own?: true
    case .turn(let turn)?: turn.mode === mode
    case .unserved(let other)?: other === mode
    case nil: false
    }
  }

  /// The host's source stands in a mode while its own run is the innermost, and in none that others run.
  private func settleHost() {
    switch runs.last {
    case .own(let name, _)?: host?.restore(to: name)
    case .turn(let turn)?: host?.remove(from: turn.mode.name)
    case .unserved(let mode)?: host?.remove(from: mode.name)
    case nil: break
    }
  }
}
