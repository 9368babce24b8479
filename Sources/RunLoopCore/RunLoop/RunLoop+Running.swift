// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// The longest time limit of a run, about sixteen years; a longer one means indefinitely.
  static let longestTimeout = 504_911_232

  /// Runs the loop in one mode.
  ///
  /// A mode that contains no source, port, timer or block is not entered, and no observer is called. Whether the mode
  /// is empty is checked again at the end of each pass, but never before a wait. If another thread removes the last
  /// item of the mode while the loop sleeps, the loop continues to sleep until something wakes it. ``stop()`` ends
  /// such a run. To replace an item, add the new one first.
  ///
  /// - Parameters:
  ///   - mode: The mode to run. A run of ``Mode/common``, which is not a real mode, finishes immediately.
  ///   - timeout: How long to run. If zero or negative, the run is a single pass that does not wait. More than 504 911
  ///     232 s means indefinitely.
  ///   - returnAfterSourceHandled: Whether to return after one source or port was handled. Defaults to `false`.
  /// - Returns: The reason why the run ended.
  /// - Precondition: The calling thread is the loop's thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopRunInMode`.
  @discardableResult
  @inline(never)
  public func run(mode: Mode, for timeout: Duration, returnAfterSourceHandled: Bool = false) -> RunResult {
    let origin = Origin(site: crl_call_site())
    requireOwnThread()
    let limit = timeout > .seconds(Self.longestTimeout) ? .max : Int64(saturating: timeout)
    return run(mode, for: limit, polls: timeout <= .zero, returnsAfterSource: returnAfterSourceHandled, from: origin)
  }

  /// Runs the loop in one mode for a number of seconds.
  ///
  /// Behaves like ``run(mode:for:returnAfterSourceHandled:)-(_,Duration,_)``. Infinity, NaN and values above 504 911
  /// 232 s mean indefinitely.
  @discardableResult
  @inline(never)
  public func run(mode: Mode, for seconds: Double, returnAfterSourceHandled: Bool = false) -> RunResult {
    let origin = Origin(site: crl_call_site())
    requireOwnThread()
    let limit = seconds <= Double(Self.longestTimeout) ? Int64(saturatingSeconds: seconds) : .max
    return run(mode, for: limit, polls: seconds <= 0, returnsAfterSource: returnAfterSourceHandled, from: origin)
  }

  /// Runs the loop in the default mode until it is stopped or the mode is empty.
  ///
  /// - Precondition: The calling thread is the loop's thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopRun`.
  @discardableResult
  @inline(never)
  public func runUntilStopped() -> RunResult {
    let origin = Origin(site: crl_call_site())
    requireOwnThread()
    return run(.default, for: .max, returnsAfterSource: false, from: origin)
  }

  /// Runs the loop in the default mode until the mode is empty.
  ///
  /// The loop is run repeatedly: ``stop()`` ends one iteration, and the next begins. The run also ends when the loop's
  /// thread is stopping. On a thread other than the loop's, the call has no effect and is reported. The corresponding
  /// Foundation method is `run()`.
  @inline(never)
  public func run() {
    let origin = Origin(site: crl_call_site())
    guard mayRun("run()") else { return }
    while run(.default, for: .max, returnsAfterSource: true, from: origin) != .finished, !stopFlag.isEnding {}
  }
}

extension RunLoop {
  /// Performs a run if its mode has anything to run.
  func run(
    _ name: Mode, for timeout: Int64, polls: Bool = false, returnsAfterSource: Bool, from origin: Origin = .unknown
  ) -> RunResult {
    guard !stopFlag.isEnding else { return takesNoItems ? .finished : .stopped }
    return enter(name, for: timeout, polls: polls, returnsAfterSource: returnsAfterSource, from: origin) ?? .finished
  }

  /// Enters the mode, makes passes until one of them has a result, and exits the mode.
  ///
  /// Returns `nil` without entering the mode if it is empty.
  ///
  /// - Parameter staysWhenEmpty: Whether the mode is run even if it is empty or does not exist yet.
  func enter(
    _ name: Mode, for timeout: Int64, polls: Bool, returnsAfterSource: Bool, staysWhenEmpty: Bool = false,
    from origin: Origin = .unknown
  ) -> RunResult? {
    if mainService != nil { askForHost(in: name) }
    tellUnreadItem()
    hasRun = true
    if hostLink != nil { beginsWithoutLimit = timeout == .max && !polls }
    guard let mode = staysWhenEmpty ? enterableMode(name, making: true) : runnableMode(name),
      staysWhenEmpty || !isEmpty(mode)
    else {
      guard
        let result = enterForOtherLoop(
          name, for: timeout, polls: polls, returnsAfterSource: returnsAfterSource, from: origin)
      else { return nil }
      return result
    }
    beginsWithoutLimit = nil
    emptyRuns = 0
    let deadline = timeout == .max || polls ? .never : tickNow + timeout
    let outer = push(
      Run(
        mode: mode, deadline: deadline, polls: polls, returnsAfterSource: returnsAfterSource,
        staysWhenEmpty: staysWhenEmpty, depth: innermost.depth + 1), mode, from: origin)
    if !staysWhenEmpty { noteEmptied(mode) }
    notify(.entry, mode)
    let result = consumeStop(mode) ? .stopped : makePasses(mode)
    notify(.exit, mode)
    pop(outer)
    if result == .finished { noteFinished(in: name, withoutLimit: timeout == .max && !polls) }
    return result
  }

  /// The state that a nested run replaces until it ends.
  private struct RunFrame {
    let run: Run
    let mode: UInt
    let stop: StopFlag.State
    let word: WakeState
    let callOut: crl_outer
    let record: UInt64
    /// The sleep that another loop performed for this one.
    let sleep: HostedSleep?
    let wasServedElsewhere: Bool
  }

  /// Makes a run the innermost one.
  @inline(__always)
  private func push(_ run: Run, _ mode: ModeState, from origin: Origin) -> RunFrame {
    let sleep = suspendHostedSleep()
    let wasServedElsewhere =
      mainService != nil && isServedElsewhere.exchange(false, ordering: .acquiringAndReleasing)
    // The nested run may look at the descriptors too.
    innermost.lastLook = .never
    let outer = innermost
    let outerMode = current.exchange(mode.address, ordering: .acquiringAndReleasing)
    let outerStop = stopFlag.begin()
    let outerWord = word.apply(.beginRun).before
    let outerCallOut = crl_recorder_nest(recorder)
    innermost = run
    takeUpLevel()
    noteRun()
    let record = beginRun(CRL_KIND_RUN, from: origin)
    // The nested run may consume what the outer run found ready, so the outer run polls again.
    hasFoundDescriptors = false
    return RunFrame(
      run: outer, mode: outerMode, stop: outerStop, word: outerWord, callOut: outerCallOut, record: record,
      sleep: sleep, wasServedElsewhere: wasServedElsewhere)
  }

  /// Pops the innermost run and restores the state of the run around it.
  @inline(__always)
  private func pop(_ outer: RunFrame) {
    innermost = outer.run
    noteRun()
    endRun(outer.record)
    crl_recorder_unnest(recorder, outer.callOut)
    if outer.wasServedElsewhere { isServedElsewhere.store(true, ordering: .releasing) }
    word.apply(.endRun(before: outer.word))
    stopFlag.end(before: outer.stop)
    current.store(outer.mode, ordering: .releasing)
    if outer.sleep != nil || guest != nil { resumeHosting(outer.sleep, after: outer.run) }
  }

  /// Runs a mode that is empty in this loop if another library's loop of the thread has items in that mode.
  @inline(never)
  private func enterForOtherLoop(
    _ name: Mode, for timeout: Int64, polls: Bool, returnsAfterSource: Bool, from origin: Origin
  ) -> RunResult? {
    let isWithoutLimit = timeout == .max && !polls
    beginsWithoutLimit = isWithoutLimit
    defer { beginsWithoutLimit = nil }
    let hadHost = hostLink != nil
    if !hadHost, mainService == nil, name != .common, !innermost.isServedByHost {
      otherLoop?.findHost(for: self, in: name)
      if hostLink != nil, let mode = runnableMode(name), !isEmpty(mode) {
        return enter(name, for: timeout, polls: polls, returnsAfterSource: returnsAfterSource, from: origin)
      }
    }
    noteEmptyRun(of: name)
    noteFinished(in: name, withoutLimit: isWithoutLimit)
    return nil
  }

  /// Lets the host report its remaining items, which did not keep the run alive.
  private func noteFinished(in name: Mode, withoutLimit isWithoutLimit: Bool) {
    guard let hostLink, hostLink.isAutomatic, mainService == nil, name != .common else { return }
    hostLink.host.runHasFinished(HostedMode(name: name, isWithoutLimit: isWithoutLimit), of: self)
  }

  private func noteEmptyRun(of name: Mode) {
    emptyRuns += 1
    guard emptyRuns == Run.mostEmptyRuns, name != .common else { return }
    Diagnostic.emptyRuns.report(
      "the run loop of \(threadDescription) was run \(Run.mostEmptyRuns) times in a row in the mode \(name), which is "
        + "empty, so that each run ended at once: a loop around such a run never waits; add a source or a port to the mode, "
        + "which keeps it alive")
  }

  private func runnableMode(_ name: Mode) -> ModeState? {
    guard name != .common else {
      Diagnostic.commonRun.report(
        "a run of the run loop of \(threadDescription) in \(name) finished at once, because \(name) stands for the common "
          + "modes and is not a mode itself: run it in one of them, such as .default")
      return nil
    }
    return enterableMode(name) ?? (isModeOfHost(name) ? enterableMode(name, making: true) : nil)
  }

  /// Returns the state of a mode to be entered, or `nil` if the mode does not exist and `making` is false.
  func enterableMode(_ name: Mode, making: Bool = false) -> ModeState? {
    var failure: SystemError?
    let mode = table.withLock { table -> ModeState? in
      guard let mode = making ? table.mode(name) : table.modes[name] else { return nil }
      if mode.isCommon.load(ordering: .relaxed) {
        do throws(SystemError) {
          try table.serveMainQueue(in: mode)
        } catch {
          failure = error
        }
      }
      return mode
    }
    if let failure {
      Diagnostic.mainQueue.report(
        "the main dispatch queue is not served in the mode \(name) of the main run loop: \(failure); its next run tries again"
      )
    }
    return mode
  }

  var isOwnThread: Bool {
    RunLoop.currentIfMade === self || (self === RunLoop.processMain && RunLoop.isMainThread && RunLoop.current === self)
  }

  /// Whether the calling thread may run the loop; if it may not, the call is counted and reported.
  ///
  /// For APIs that have neither an error nor a precondition.
  package func mayRun(_ spelling: String) -> Bool {
    if isCallersToRun { return true }
    countRejection()
    guard !isLeftMain else {
      Diagnostic.mainThreadHasLeft.report(
        "\(spelling) of the main run loop did nothing: \(RunLoopError.mainThreadHasLeft)")
      return false
    }
    Diagnostic.foreignRun.report(
      "\(spelling) of the run loop of \(threadDescription) was called by \(RunLoop.callingThreadDescription) and did nothing: "
        + "a run loop is run by its own thread; hand it work with perform")
    return false
  }

  /// Whether the loop belongs to the calling thread and has not ended.
  @inline(__always)
  package var isCurrent: Bool { RunLoop.isCurrent(at: RunLoop.address(of: self)) }

  /// Whether the loop belongs to the calling thread, even if the loop has already ended.
  package var isOfCallingThread: Bool { isCallersToRun }

  /// Whether the calling thread may run the loop, even in its last destructors, when a run would finish immediately.
  private var isCallersToRun: Bool { isOwnThread || (takesNoItems && threadID == RunLoop.callingThreadID) }

  /// Traps unless the calling thread may run the loop.
  package func requireOwnThread() {
    guard !isCallersToRun else { return }
    let reason = isLeftMain ? ": \(RunLoopError.mainThreadHasLeft)" : ""
    fatalError("the run loop of \(threadDescription) cannot be run by \(RunLoop.callingThreadDescription)\(reason)")
  }

  /// Throws unless the calling thread may run the loop.
  package func checkOwnThread() throws(RunLoopError) {
    guard !isCallersToRun else { return }
    guard !isLeftMain else { throw .mainThreadHasLeft }
    throw .wrongThread(loop: threadDescription, caller: RunLoop.callingThreadDescription)
  }
}
