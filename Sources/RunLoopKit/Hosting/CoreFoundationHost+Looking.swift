// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

// Runs of Core Foundation's loop that only look, and whose stops are whose.
//
// A run of Core Foundation's that has no time, or ends after a source, forgets a stop that comes in its turn: it
// answers that its time is over, or that it has handled a source. So a look is a run with all the time there is, which
// a stop of its mode ends after one pass. That stop is answered after any other, and stays in the mode if there was
// another. The next run of the mode then returns before a pass: that is how we know of the other.
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

  /// For a run that ends after a source, which serves one: a source that stops it ends it anyway.
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

  /// Before a run of somebody else's in a mode: what is left over there must not end it.
  func othersRunBegins(in name: RunLoopCore.RunLoop.Mode) {
    guard let mode = modes[name], mode.leftOver != nil else { return }
    removeSource(from: mode)
    let hosted = HostedMode(name: name)
    guard RunLoopCore.RunLoop.current.currentMode != nil else {
      // No run is active that could be meant.
      var clearing = Wait(mode: mode, hosted: hosted)
      clearing.isClearing = true
      _ = run(clearing, for: 0, endsAfterSource: true)
      return
    }
    let (result, ended, leftOver) = runLook(hosted, mode)
    if result == .stopped, isStoppedByLeftOver(leftOver, ended) { return }
    // What has stopped the look has stopped the run that begins; if both have, the mode's stop is left for that.
    if result == .stopped, !ended.hasStoppedMode { CoreFoundation.CFRunLoopStop(runLoop) }
    // The look may have served what the run was to return after.
    service?.mode(name)?.items.noteHandled()
  }
}

// Whose a stop is.
extension CoreFoundationHost {
  /// Before a wait or a look: what was left for runs that have ended is for nobody.
  func begin(_ hosted: HostedMode) {
    guard hosted.isFirstWait else { return }
    owedStops = owedStops.filter { $0 < hosted.depth }
    for mode in modes.values {
      if case .ofRun(let depth)? = mode.leftOver, depth >= hosted.depth { mode.leftOver = .ofNobody }
    }
  }

  /// Whether a run was ended by the stop of its mode that an earlier one has left, and whose that one's was is noted.
  ///
  /// - Parameter leftOver: What was left before the run.
  func isStoppedByLeftOver(_ leftOver: LeftOver?, _ ended: Wait) -> Bool {
    if let leftOver, !ended.hasBegunPass {
      if case .ofRun(let depth) = leftOver { owedStops.insert(depth) }
      return true
    }
    // One that was nested in this run, and has ended, may have left it.
    if !ended.hasStoppedMode, ended.mode.leftOver != nil {
      ended.mode.leftOver = nil
      return true
    }
    return false
  }

  /// Runs a mode, and says what the run was like and what was left in the mode before.
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
    if isEnding, outer == nil { invalidate() }
    return (result, ended, leftOver)
  }

  func stop(_ mode: Mode) {
    rlk_stop_mode(Unmanaged.passUnretained(runLoop).toOpaque(), Unmanaged.passUnretained(mode.name).toOpaque())
  }
}

// One pass.
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

  /// Makes a source that stands behind all others, so that what it asks for comes when they were performed.
  private func makeLookSource() -> CFRunLoopSource? {
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in CoreFoundationHost.at(info)?.stopAfter(blocks: 2) }
    return CFRunLoopSourceCreate(nil, .max, &context)
  }

  /// Stops the look at the end of its pass.
  ///
  /// Blocks are performed after the sources, and again at the end, those that were added meanwhile. There a wake-up,
  /// which comes with the stop, is ignored: it would be what the next look finds, in the place of something else.
  private func stopAfter(blocks: Int) {
    guard let wait, wait.isLook, wait.depth == 1 else { return }
    guard blocks == 0 else {
      CFRunLoopPerformBlock(runLoop, wait.mode.name) { [weak self] in self?.stopAfter(blocks: blocks - 1) }
      return
    }
    self.wait?.hasStoppedMode = true
    stop(wait.mode)
  }

  /// A second pass begins, or a wait: a run that was nested in the look has performed the source.
  func endLook(of look: Wait) {
    guard look.hasBegunPass else { return }
    wait?.hasStoppedMode = true
    // Either ends the pass without waiting.
    if let lookSource { CFRunLoopSourceSignal(lookSource) }
    stop(look.mode)
  }
}
