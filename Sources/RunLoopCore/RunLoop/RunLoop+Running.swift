// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// The longest time that a run counts: about sixteen years.
  ///
  /// A longer time means indefinitely.
  static let longestTimeout = 504_911_232

  /// Runs the loop in one mode.
  ///
  /// A mode with no source, port, timer or block in it is not entered, and no observer is called. Whether a mode is
  /// empty is checked again at the end of each pass, and never before a wait: if another thread removes the last item
  /// of its mode while the loop sleeps, the loop goes on sleeping until something wakes it. ``stop()`` ends such a run;
  /// to replace an item, add the new one first.
  ///
  /// - Parameters:
  ///   - mode: The mode to run. ``Mode/common`` is not a mode that can run, so such a run is finished.
  ///   - timeout: How long to run. With zero or less, the run is one pass that does not wait. More than 504 911 232 s
  ///     means indefinitely.
  ///   - returnAfterSourceHandled: Whether to return after one source or port was handled.
  /// - Returns: Why the run ended.
  /// - Precondition: The calling thread is the loop's.
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
  /// It behaves like ``run(mode:for:returnAfterSourceHandled:)-(_,Duration,_)``. Infinity, more than 504 911 232 s, and
  /// a value that is not a number mean indefinitely.
  @discardableResult
  @inline(never)
  public func run(mode: Mode, for seconds: Double, returnAfterSourceHandled: Bool = false) -> RunResult {
    let origin = Origin(site: crl_call_site())
    requireOwnThread()
    let limit = seconds <= Double(Self.longestTimeout) ? Int64(saturatingSeconds: seconds) : .max
    return run(mode, for: limit, polls: seconds <= 0, returnsAfterSource: returnAfterSourceHandled, from: origin)
  }

  /// Runs the loop in the default mode until it is stopped or has nothing left.
  ///
  /// - Precondition: The calling thread is the loop's.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopRun`.
  @discardableResult
  @inline(never)
  public func runUntilStopped() -> RunResult {
    let origin = Origin(site: crl_call_site())
    requireOwnThread()
    return run(.default, for: .max, returnsAfterSource: false, from: origin)
  }

  /// Runs the loop in the default mode until it has nothing left.
  ///
  /// ``stop()`` ends one turn of the run, and the next turn begins; only the end of the thread's work ends the run. On
  /// a thread that is not the loop's it has no effect, and reports that. The corresponding Foundation method is
  /// `run()`.
  @inline(never)
  public func run() {
    let origin = Origin(site: crl_call_site())
    guard mayRun("run()") else { return }
    while run(.default, for: .max, returnsAfterSource: true, from: origin) != .finished, !stopFlag.isEnding {}
  }
}

extension RunLoop {
  /// Makes one run, if its mode has anything to run.
  func run(
    _ name: Mode, for timeout: Int64, polls: Bool = false, returnsAfterSource: Bool, from origin: Origin = .unknown
  ) -> RunResult {
    guard !stopFlag.isEnding else { return takesNoItems ? .finished : .stopped }
    return enter(name, for: timeout, polls: polls, returnsAfterSource: returnsAfterSource, from: origin) ?? .finished
  }

  /// Makes one run: enters the mode, makes passes until one of them has a result, and leaves.
  ///
  /// Returns nil if the mode is empty, and was not entered.
  ///
  /// - Parameter staysWhenEmpty: Whether the mode is run even if it is empty, or does not exist yet.
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

  /// What a run takes the place of, until its end.
  private struct RunFrame {
    let run: Run
    let mode: UInt
    let stop: StopFlag.State
    let word: WakeState
    let callOut: crl_outer
    let record: UInt64
    /// The sleep that another loop slept for this one.
    let sleep: HostedSleep?
    let wasServedElsewhere: Bool
  }

  /// Makes a run the innermost one.
  @inline(__always)
  private func push(_ run: Run, _ mode: ModeState, from origin: Origin) -> RunFrame {
    let sleep = suspendHostedSleep()
    let wasServedElsewhere =
      mainService != nil && isServedElsewhere.exchange(false, ordering: .acquiringAndReleasing)
    let outer = innermost
    let outerMode = current.exchange(mode.address, ordering: .acquiringAndReleasing)
    let outerStop = stopFlag.begin()
    let outerWord = word.apply(.beginRun).before
    let outerCallOut = crl_recorder_nest(recorder)
    innermost = run
    takeUpLevel()
    noteRun()
    let record = beginRun(CRL_KIND_RUN, from: origin)
    // This run may read what an outer run has found ready, so the outer run asks for it again.
    hasFoundDescriptors = false
    return RunFrame(
      run: outer, mode: outerMode, stop: outerStop, word: outerWord, callOut: outerCallOut, record: record,
      sleep: sleep, wasServedElsewhere: wasServedElsewhere)
  }

  /// Ends the innermost run.
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

  /// Makes a run of a mode that is empty in this loop, if another library's loop of the thread has items in it.
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

  /// Lets the host report what is left of its own, which has not kept a run alive.
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

  /// A mode that is about to be entered; nil if it does not exist and is not to be made.
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

  /// Whether the calling thread is the loop's.
  var isOwnThread: Bool {
    RunLoop.currentIfMade === self || (self === RunLoop.processMain && RunLoop.isMainThread && RunLoop.current === self)
  }

  /// Whether the calling thread may run the loop; if not, this is counted and reported.
  ///
  /// For spellings that have no error and no precondition.
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

  /// Whether the loop is the calling thread's and has not ended.
  @inline(__always)
  package var isCurrent: Bool { RunLoop.isCurrent(at: RunLoop.address(of: self)) }

  /// Whether the calling thread is the loop's, even if its loop has ended before it.
  package var isOfCallingThread: Bool { isCallersToRun }

  /// Whether the calling thread may run the loop; in the last destructors of a thread its loop has ended, and a run is
  /// finished.
  private var isCallersToRun: Bool { isOwnThread || (takesNoItems && threadID == RunLoop.callingThreadID) }

  /// Ends the process unless the calling thread may run the loop.
  package func requireOwnThread() {
    guard !isCallersToRun else { return }
    let reason = isLeftMain ? ": \(RunLoopError.mainThreadHasLeft)" : ""
    fatalError("the run loop of \(threadDescription) cannot be run by \(RunLoop.callingThreadDescription)\(reason)")
  }

  /// Throws unless the calling thread may run the loop; for spellings that can throw.
  package func checkOwnThread() throws(RunLoopError) {
    guard !isCallersToRun else { return }
    guard !isLeftMain else { throw .mainThreadHasLeft }
    throw .wrongThread(loop: threadDescription, caller: RunLoop.callingThreadDescription)
  }
}
