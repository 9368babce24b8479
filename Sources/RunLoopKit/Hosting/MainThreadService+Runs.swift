// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

/// A run of Core Foundation's main loop.
enum HostRun {
  /// A run in which one of our runs waits or looks.
  case own(RunLoopCore.RunLoop.Mode, hasBegun: Bool)
  /// Another run, in which our loop is served.
  case turn(Turn)
  /// Another run, in which our loop is not served.
  case unserved(ServedMode)
}

/// Our loop's guest for one run of Core Foundation's loop.
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

  /// Whether our loop has work to do.
  ///
  /// If a source was handled, the run must be able to return first.
  var isDue: Bool { (gate.isOpen || guest.isDue) && !mode.items.isHandledPending }

  func serve() {
    if guest.service() == .handledSource { mode.items.noteHandled() }
    // Our last item may be gone. In that case, Core Foundation must notice it before it sleeps.
    guard mode.keepsAlive else { return }
    mode.updateMark(of: .current)
    if !mode.keepsAlive { CFRunLoopWakeUp(mode.runLoop) }
  }

  func end() {
    guest.invalidate()
    mode.items.clear()
  }
}

// Runs of Core Foundation's main loop. Main thread only.
extension MainThreadService {
  /// Makes a run of Core Foundation's loop in which one of our runs waits or looks.
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
    guard let turn = makeTurn(mode, loop) else { return }
    host?.remove(from: mode.name)
    runs[runs.count - 1] = .turn(turn)
    let wasMarked = mode.keepsAlive
    mode.updateMark(of: loop)
    // If our last item was removed since, the run must find its mode empty. A wake-up in every run would displace
    // other events, because a run of one pass serves a single port.
    if wasMarked, !mode.keepsAlive { CFRunLoopWakeUp(mode.runLoop) }
  }

  /// Makes our loop a guest of a run and lets Core Foundation drain the main dispatch queue, or returns nil.
  private func makeTurn(_ mode: ServedMode, _ loop: RunLoopCore.RunLoop) -> Turn? {
    let isNestedInGuest = loop.isExplicitGuest
    if let runLoop, !isNestedInGuest { setHost(for: loop, in: runLoop) }
    guard isNestedInGuest || host != nil else { return nil }
    guard let turn = Turn(mode, loop) else { return nil }
    // The items in the mode belong to the innermost turn.
    stopWatching()
    guard isNestedInGuest else { return turn }
    // The turn takes precedence over the outer guest, which would otherwise determine the host.
    settleLooks(of: loop)
    if let runLoop { setHost(for: loop, in: runLoop) }
    return turn
  }

  /// Makes the turns watch nothing until our loop sleeps in them again.
  func stopWatching() {
    for case .turn(let turn) in runs { turn.gate.watch(nil, until: .never) }
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
      lookAgain(in: .current)
      mode.updateMark(of: .current)
    case .unserved(let other)? where other === mode:
      runs.removeLast()
      // A guest of another loop that ran this one sleeps there again.
      RunLoopCore.RunLoop.current.noteHostWaits()
    default: return
    }
    settleHost()
  }

  func serve(_ mode: ServedMode) {
    guard !isEndingTurn, let turn = turn(in: mode) else { return }
    turn.serve()
    // Our loop may be asleep again, but the run continues with other items.
    if turn.guest.isValid { RunLoopCore.RunLoop.current.noteHostRuns() }
    serveMainQueue(in: turn)
  }

  /// Drains the main dispatch queue after every fourth service of our loop, if it has work.
  ///
  /// A run of Core Foundation's loop that returns after a source checks the queue last, and serves a single event. If
  /// our loop always had a ready descriptor, it would never reach the queue.
  private func serveMainQueue(in turn: Turn) {
    servicesSinceQueue += 1
    guard servicesSinceQueue >= 4 else { return }
    servicesSinceQueue = 0
    let loop = RunLoopCore.RunLoop.current
    guard loop.hasMainQueueWork, rlk_begin_draining() != 0 else { return }
    loop.runMainQueue()
    rlk_end_draining()
    // When Core Foundation drains the queue, a run that returns after a source returns, and so it does here.
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

  /// Returns whether the innermost known run is in this mode.
  ///
  /// If it is not, the run began before the observers were added.
  private func isKnown(_ mode: ServedMode) -> Bool {
    switch runs.last {
    case .own?: true
    case .turn(let turn)?: turn.mode === mode
    case .unserved(let other)?: other === mode
    case nil: false
    }
  }

  /// Keeps the host's source in a mode only while its own run is the innermost one.
  private func settleHost() {
    switch runs.last {
    case .own(let name, _)?: host?.restore(to: name)
    case .turn(let turn)?: host?.remove(from: turn.mode.name)
    case .unserved(let mode)?: host?.remove(from: mode.name)
    case nil: break
    }
  }
}
