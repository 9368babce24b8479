// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import Synchronization

extension RunLoop.Guest {
  /// Serves what is due without waiting, and puts the loop back to sleep.
  ///
  /// It does what a run does from one sleep to the next:
  ///
  /// 1. If there is no reason for a pass, for example because only a timer's date was moved, it returns without
  ///    calling any observer.
  /// 2. The first call notifies observers of ``RunLoop/Activity/entry``; later calls notify observers of
  ///    ``RunLoop/Activity/afterWaiting`` if there was a wait.
  /// 3. It makes one pass that does not wait. The pass performs at most one signalled source and serves one class of
  ///    ready events.
  /// 4. If nothing else can run, observers of ``RunLoop/Activity/beforeWaiting`` are called, and the loop is asleep.
  ///    Otherwise the descriptor becomes readable immediately, so that the host gets its turn between two passes.
  ///
  /// If it is called in a call-out of the loop, or while the loop is being run in a call-out of the host, it is a
  /// nested run that polls.
  ///
  /// - Returns: ``RunLoop/RunResult/handledSource`` if a source, a descriptor, a port or the main dispatch queue was
  ///   served; ``RunLoop/RunResult/stopped`` if the loop was stopped, after which most hosts also stop, although the
  ///   guest can continue unless its thread is stopping; ``RunLoop/RunResult/finished`` if nothing keeps the mode
  ///   alive, or if the guest is invalid; ``RunLoop/RunResult/timedOut`` otherwise.
  /// - Precondition: The calling thread is the loop's thread.
  @discardableResult
  public func service() -> RunLoop.RunResult {
    guard state != .ended else { return .finished }
    loop.requireOwnThread()
    guard isInnermost, state != .servicing else {
      return loop.run(mode, for: .max, polls: true, returnsAfterSource: true)
    }
    guard !loop.stopFlag.isEnding else { return reject() }
    guard hasReason() else { return loop.isEmpty(table) ? .finished : .timedOut }
    let hasWaited = state == .waiting
    state = .servicing
    loop.takeUpLevel()
    let outerCallOut = crl_recorder_nest(loop.recorder)
    let record = loop.beginRun(CRL_KIND_HOST, from: origin)
    notifyBefore(hasWaited: hasWaited)
    let result = resultOfPass()
    loop.endRun(record)
    crl_recorder_unnest(loop.recorder, outerCallOut)
    loop.requireNothingLeft(in: self)
    if state != .ended { settle() }
    return result
  }

  /// Serves what is due, pass after pass, until nothing is due or the time budget is used up.
  ///
  /// This is for a program that draws frames and reserves part of each frame for the loop. A call-out is not
  /// interrupted, and each phase of a pass that has begun makes one call-out even then, so that no class of work
  /// starves: the call overruns its budget by a few call-outs at most. The blocks of the main dispatch queue count as
  /// one call-out, as do the tasks of the main actor, which run there, and the observers of one activity. The next call
  /// serves the remaining work, in order.
  ///
  /// - Returns: The result of the last pass, and what remains.
  /// - Precondition: The calling thread is the loop's thread.
  @discardableResult
  public func service(for budget: Duration) -> BudgetReport {
    let end = loop.tickNow + Int64(saturating: budget)
    var result: RunLoop.RunResult
    repeat {
      if isInnermost { loop.innermost.budgetEnd = end }
      result = service()
      if isInnermost { loop.innermost.budgetEnd = .never }
    } while result != .stopped && isReady && loop.tickNow < end
    return BudgetReport(result: result, isDone: !isReady, waitingCount: loop.faceReading.waitingBlocks)
  }

  /// Whether something is due, consistent with the descriptor's readability.
  private var isReady: Bool { isDue || (isBetweenServices && (gate as? Gate)?.isOpen ?? false) }

  /// The outcome of serving a loop within a time budget.
  public struct BudgetReport: Sendable, Hashable {
    /// The result of the last pass.
    public let result: RunLoop.RunResult
    /// Whether nothing was due at the end.
    public let isDone: Bool
    /// The number of queued blocks, executor jobs and hand-offs in all modes.
    public let waitingCount: Int
  }

  /// Ends the guest and closes its descriptor; the loop of a nested guest becomes the outer host's guest again.
  ///
  /// The host must no longer watch the descriptor. The observers of ``RunLoop/Activity/exit`` are called if those of
  /// ``RunLoop/Activity/entry`` were. If this is called in a call-out of the loop, the guest is not serviced again,
  /// and ends when the call-outs are over. Calling it again has no effect.
  ///
  /// - Precondition: The calling thread is the loop's thread.
  public func invalidate() {
    guard state != .ended else { return }
    loop.requireOwnThread()
    isEnding = true
    if isInnermost, state != .servicing { settle() }
  }

  /// Ends a guest that only slept, and returns whether the loop was stopped meanwhile.
  package func endSleep() -> Bool {
    loop.awaken()
    let isStopped = loop.consumeStop(table)
    finish()
    return isStopped
  }

  /// Records the kind of host for the instruments.
  package func noteHost(_ host: crl_host) { _ = crl_face_set_host(loop.recorder, host.rawValue) }

  /// Whether the guest sleeps, or is about to be serviced, with no run or guest nested in it.
  package var isBetweenServices: Bool { isInnermost && (state == .ready || state == .waiting) }

  /// Whether no run or guest is nested in this one.
  var isInnermost: Bool { loop.guest === self && loop.innermost.depth == outerRun.depth + 1 }
}

// These must be called on the loop's thread.
extension RunLoop.Guest {
  /// Wakes up, or goes back to sleep and returns `false` if there was no reason to wake up.
  private func hasReason() -> Bool {
    let isAsleep = loop.hostedSleep != nil
    let isWoken = loop.awaken().isWoken
    guard isAsleep, !isWoken else {
      if let gate { loop.close(gate) }
      return true
    }
    loop.lookAtDescriptors(table)
    return !fallAsleep()
  }

  private func fallAsleep() -> Bool {
    guard let gate else { return false }
    return loop.fallAsleep(table, at: gate)
  }

  private func notifyBefore(hasWaited: Bool) {
    if !hasEntered {
      hasEntered = true
      loop.notify(.entry, table)
    } else if hasWaited {
      loop.notify(.afterWaiting, table)
    }
  }

  private func resultOfPass() -> RunLoop.RunResult {
    let result = loop.makePasses(table)
    if result == .handledSource { return result }
    if loop.consumeStop(table) { return .stopped }
    return loop.isEmpty(table) ? .finished : .timedOut
  }

  /// Called after a pass: puts the loop to sleep, leaves the gate open for the next pass, or ends an ending guest.
  func settle() {
    guard !isEnding else { return finish() }
    state = .servicing
    // A wake-up that arrived after the pass's last check requires another pass.
    let isLate = loop.beginPass()
    var isAsleep = false
    // While a source is signalled, the next pass follows without a wait, as in a run.
    let polls = isLate || loop.hasSignalledSource(table)
    if !polls {
      loop.notifyBeforeWaiting(table)
      isAsleep = !isEnding && fallAsleep()
    }
    guard !isEnding else { return finish() }
    state = polls ? .ready : .waiting
    if !isAsleep { gate?.open() }
  }

  /// Serves nothing because the loop's thread is stopping.
  private func reject() -> RunLoop.RunResult {
    loop.awaken()
    gate?.watch(nil, until: .never)
    if let gate { loop.close(gate) }
    return .stopped
  }

  func finish() {
    loop.awaken()
    loop.noteHostReturns()
    state = .servicing
    if hasEntered { loop.notify(.exit, table) }
    loop.innermost = outerRun
    loop.noteRun()
    noteHost(outerHost)
    loop.isServedElsewhere.store(wasServedElsewhere, ordering: .releasing)
    loop.word.apply(.endRun(before: outerWord))
    loop.stopFlag.end(before: outerStop)
    loop.current.store(outerMode, ordering: .releasing)
    drop()
    loop.guest = outerGuest
    if !isAutomatic { loop.mainService?.guestEnds(of: loop, in: mode) }
    if loop.isExplicitGuest { loop.mainService?.returnsToGuest(loop) }
    loop.resumeHosting(outerSleep, after: outerRun)
  }

  /// Drops the gate, which a thread that is opening it may still hold.
  private func drop() {
    state = .ended
    gate?.isRetired = true
    gate = nil
  }

  /// Ends the guest together with the loop, without a call-out.
  fileprivate func abandon() {
    drop()
    outerSleep = nil
    outerGuest?.abandon()
  }
}

extension RunLoop {
  /// Called after a nested run or guest: resumes the outer guest's sleep, or ends that guest.
  func resumeHosting(_ sleep: HostedSleep?, after run: Run) {
    if let guest, guest.outerRun.depth >= run.depth { failForGuest() }
    if let sleep { resume(sleep) }
    if let guest, guest.isEnding, guest.isInnermost, guest.state != .servicing { guest.settle() }
  }

  /// Traps after a pass of a guest unless that guest is the innermost one again.
  fileprivate func requireNothingLeft(in guest: Guest) {
    if let innermost = self.guest, innermost !== guest { failForGuest() }
  }

  private func failForGuest() -> Never {
    fatalError("a guest of the run loop of \(threadDescription) was made in a call-out and left there")
  }

  /// Ends all guests with the loop's thread, without calling any observer.
  func abandonGuests() {
    if hostedSleep != nil { awaken() }
    guest?.abandon()
    guest = nil
  }
}
