// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// Lets our main loop and Core Foundation's serve each other, without a call.
///
/// Our runs wait in Core Foundation's loop: its `findHost` sets a host as soon as there is such a loop. Core
/// Foundation's runs serve ours, by observers in each mode that ours has; see `MainThreadService+Runs.swift`. Nobody
/// asks Core Foundation to make its main loop: until somebody else does there is nothing to serve.
final class MainThreadService: MainLoopService, @unchecked Sendable {
  // Sendable: the lock guards the table of modes, and what Core Foundation's loop is; `runs` and what comes after
  // that belong to the main thread.

  private let lock = Lock()
  private var modes: [RunLoopCore.RunLoop.Mode: ServedMode] = [:]
  private var found: CFRunLoop?
  private let isOff = Atomic<Bool>(false)
  /// Whether Core Foundation's main loop has been made, or is being made.
  private let isThere = Atomic<Bool>(false)
  /// The runs of Core Foundation's loop that are known to be active, the outermost first.
  var runs: [HostRun] = []
  /// What our observers of a run's end call is no part of the run, and not served.
  var isEndingTurn = false
  weak var host: CoreFoundationHost?

  var isOn: Bool { !isOff.load(ordering: .acquiring) }

  func turn(on: Bool) { isOff.store(!on, ordering: .releasing) }

  /// Core Foundation's main loop, if it has been made.
  ///
  /// Any thread. Until it is made this costs one load.
  var runLoop: CFRunLoop? {
    guard isThere.load(ordering: .acquiring) else { return nil }
    if let found = lock.withLock({ found }) { return found }
    return rlk_main_loop_if_made().map { Unmanaged<CFRunLoop>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Takes note that Core Foundation's main loop is being made.
  ///
  /// Any thread.
  func noteMaking() { isThere.store(true, ordering: .releasing) }

  /// Looks for Core Foundation's main loop, which may have been made before anybody could tell.
  ///
  /// Any thread. Once the loop is known this costs one load, and until then an uncontended lock of Core Foundation's.
  func lookForLoop() {
    if !isThere.load(ordering: .acquiring), rlk_main_loop_if_made() != nil { noteMaking() }
  }
}

// What our loop tells.
extension MainThreadService {
  func findHost(for loop: RunLoopCore.RunLoop) {
    guard isOn else { return }
    // One that is made by Core Foundation's own calls does not notify us, whenever that is.
    lookForLoop()
    guard let runLoop, !loop.hasExplicitGuest else { return }
    attach(to: runLoop, loop)
    do {
      try loop.setHost(isAutomatic: true) { CoreFoundationHost($0, service: self) }
    } catch {
      Diagnostic.coreFoundation.report(
        "Core Foundation's main run loop and RunLoop.main do not serve each other: \(error)")
    }
  }

  func itemCame(to mode: RunLoopCore.RunLoop.Mode, of loop: RunLoopCore.RunLoop) {
    guard isOn, let runLoop else { return }
    for name in mode == .common ? loop.commonModes : [mode] {
      let mode = serve(name, of: runLoop)
      if !mode.keepsAlive { mode.updateMark(of: loop) }
    }
  }

  func stopInnermost(of other: AnyObject) -> Bool {
    guard isOn, let loop = RunLoopCore.RunLoop.mainIfMade else { return false }
    // The caller may have made it just now, by asking for the loop that is to stop.
    lookForLoop()
    guard let runLoop, runLoop === other else { return false }
    guard loop.isInnermostItself else { return false }
    loop.stop()
    return true
  }

  /// Begins to serve our loop in the runs of Core Foundation's; again: nothing.
  ///
  /// Any thread.
  func attach(to runLoop: CFRunLoop, _ loop: RunLoopCore.RunLoop) {
    noteMaking()
    let isNew = lock.withLock {
      defer { found = runLoop }
      return found == nil
    }
    guard isNew else { return }
    for name in loop.modes {
      serve(name, of: runLoop).updateMark(of: loop)
    }
    // It may sleep by itself.
    if RunLoopCore.RunLoop.currentIfMade !== loop { loop.wakeUp() }
  }

  /// The served mode of a name, which becomes one.
  ///
  /// Its observers stand when this returns.
  @discardableResult
  func serve(_ name: RunLoopCore.RunLoop.Mode, of runLoop: CFRunLoop) -> ServedMode {
    let mode = lock.withLock { () -> ServedMode in
      let mode = modes[name] ?? ServedMode(name, of: runLoop, for: self)
      modes[name] = mode
      return mode
    }
    // A run of the mode that sleeps is to see the observers before what comes next for ours.
    if mode.observe(), !RunLoopCore.RunLoop.isMainThread { CFRunLoopWakeUp(runLoop) }
    return mode
  }

  /// The served mode of a name, if it is one.
  ///
  /// Any thread.
  func mode(_ name: RunLoopCore.RunLoop.Mode) -> ServedMode? { lock.withLock { modes[name] } }
}
