// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

// Looks, which are runs of Core Foundation's loop that make a single pass, and the attribution of stops.
//
// A run of Core Foundation's loop with a time limit of zero, or one that ends after a source, loses a stop that arrives
// in the same turn: it reports that it timed out or handled a source. A look is therefore a run without a time limit,
// which a stop of its mode ends after one pass. This stop is handled after any other stop, and remains in the mode if
// there was another one. The next run of the mode then returns before its first pass, which reveals the other stop.
extension CoreFoundationHost {
  func look(in hosted: HostedMode) -> HostReport {
    let mode = known(hosted)
    begin(hosted)
    guard owedStops.remove(hosted.depth) == nil else { return .stopped }
    removeSource(from: mode)
    guard !hosted.endsAfterSource else { return lookForOneSource(hosted, mode) }
    let (result, ended, leftOver) = runLook(hosted, mode)
    guard result == .stopped else { return [] }
    guard !isStoppedByLeftOver(leftOver, ended) else { return look(in: hosted) }
    guard ended.hasStoppedMode else { return .stopped }
    mode.leftOver = .ofRun(depth: hosted.depth)
    return []
  }

  /// Looks in a run that ends after one source, where it makes no difference whether a source also stops the run.
  private func lookForOneSource(_ hosted: HostedMode, _ mode: Mode) -> HostReport {
    var look = Wait(mode: mode, hosted: hosted)
    look.isLook = true
    let (result, ended, leftOver) = run(look, for: 0, endsAfterSource: true)
    switch result {
    case .handledSource: return .handledSource
    case .stopped: return isStoppedByLeftOver(leftOver, ended) ? self.look(in: hosted) : .stopped
    default: return []
    }
  }

  /// Called before another run in a mode begins, so that a leftover stop does not end it.
  func othersRunBegins(in name: RunLoopCore.RunLoop.Mode) {
    guard let mode = modes[name], mode.leftOver != nil else { return }
    removeSource(from: mode)
    let hosted = HostedMode(name: name)
    guard RunLoopCore.RunLoop.current.currentMode != nil else {
      // No active run can be affected.
      var clearing = Wait(mode: mode, hosted: hosted)
      clearing.isClearing = true
      _ = run(clearing, for: 0, endsAfterSource: true)
      return
    }
    let (result, ended, leftOver) = runLook(hosted, mode)
    if result == .stopped, isStoppedByLeftOver(leftOver, ended) { return }
    // The stop that ended the look was meant for the run that begins. If both were stopped, the mode's stop remains.
    if result == .stopped, !ended.hasStoppedMode { CoreFoundation.CFRunLoopStop(runLoop) }
    // The look may have served the source after which the run should return.
    service?.mode(name)?.items.noteHandled()
  }
}

// Attribution of stops.
extension CoreFoundationHost {
  /// Called before a wait or a look.
  ///
  /// Stops that were left over for runs that have ended no longer belong to any run.
  func begin(_ hosted: HostedMode) {
    guard hosted.isFirstWait else { return }
    owedStops = owedStops.filter { $0 < hosted.depth }
    for mode in modes.values {
      if case .ofRun(let depth)? = mode.leftOver, depth >= hosted.depth { mode.leftOver = .ofNobody }
    }
  }

  /// Whether a run was ended by a stop of its mode that an earlier run left over, which is then attributed.
  ///
  /// - Parameter leftOver: The leftover stop of the mode before the run.
  func isStoppedByLeftOver(_ leftOver: LeftOver?, _ ended: Wait) -> Bool {
    if let leftOver, !ended.hasBegunPass {
      if case .ofRun(let depth) = leftOver { owedStops.insert(depth) }
      return true
    }
    // A nested run that has ended may have left the stop over.
    if !ended.hasStoppedMode, ended.mode.leftOver != nil {
      ended.mode.leftOver = nil
      return true
    }
    return false
  }

  /// Runs a mode, and returns the result, the state of the run, and the leftover stop of the mode before it.
  func run(
    _ begun: Wait, for seconds: Double, endsAfterSource: Bool
  ) -> (CFRunLoopRunResult, Wait, LeftOver?) {
    let mode = begun.mode
    let leftOver = mode.leftOver
    mode.leftOver = nil
    let outer = wait
    wait = begun
    let result: CFRunLoopRunResult
    if let service {
      result = service.runOwn(mode.ours) { CFRunLoopRunInMode(mode.name, seconds, endsAfterSource) }
    } else {
      result = CFRunLoopRunInMode(mode.name, seconds, endsAfterSource)
    }
    let ended = wait ?? begun
    wait = outer
    RunLoopCore.RunLoop.current.noteHostReturns()
    if isEnding, outer == nil { invalidate() }
    return (result, ended, leftOver)
  }

  func stop(_ mode: Mode) {
    rlk_stop_mode(Unmanaged.passUnretained(runLoop).toOpaque(), Unmanaged.passUnretained(mode.name).toOpaque())
  }
}

// Runs of a single pass.
extension CoreFoundationHost {
  private func runLook(_ hosted: HostedMode, _ mode: Mode) -> (CFRunLoopRunResult, Wait, LeftOver?) {
    var look = Wait(mode: mode, hosted: hosted)
    look.isLook = true
    // A pass in which a source was handled does not wait.
    let source = lookSource ?? makeLookSource()
    lookSource = source
    CFRunLoopAddSource(runLoop, source, mode.name)
    CFRunLoopSourceSignal(source)
    defer { CFRunLoopRemoveSource(runLoop, source, mode.name) }
    return run(look, for: .infinity, endsAfterSource: false)
  }

  /// Creates a source that is performed after all others, so that the stop it requests takes effect after them.
  private func makeLookSource() -> CFRunLoopSource? {
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in CoreFoundationHost.at(info)?.stopAfter(blocks: 2) }
    return CFRunLoopSourceCreate(nil, .max, &context)
  }

  /// Stops the look at the end of its pass.
  ///
  /// Blocks are performed after the sources and again at the end of the pass. At that point, the wake-up that
  /// accompanies the stop is ignored. Otherwise, the next look would find that wake-up instead of another event.
  private func stopAfter(blocks: Int) {
    guard let wait, wait.isLook, wait.depth == 1 else { return }
    guard blocks == 0 else {
      CFRunLoopPerformBlock(runLoop, wait.mode.name) { [weak self] in self?.stopAfter(blocks: blocks - 1) }
      return
    }
    self.wait?.hasStoppedMode = true
    stop(wait.mode)
  }

  /// Called when a second pass or a wait begins, because a run nested in the look has performed its source.
  func endLook(of look: Wait) {
    guard look.hasBegunPass else { return }
    wait?.hasStoppedMode = true
    // Either of these ends the pass without waiting.
    if let lookSource { CFRunLoopSourceSignal(lookSource) }
    stop(look.mode)
  }
}
