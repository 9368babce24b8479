// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import Synchronization

extension RunLoop.Guest {
  /// Serves what is due, without waiting, and puts the loop to sleep again.
  ///
  /// It does what a run does from one sleep to the next:
  ///
  /// 1. If there is no reason for a pass, for example because only a timer's date was moved, it returns here and calls
  ///    no observer.
  /// 2. Observers of ``RunLoop/Activity/entry`` are called the first time; later those of
  ///    ``RunLoop/Activity/afterWaiting`` are called, if there was a wait.
  /// 3. It makes one pass that does not wait: the pass performs at most one signalled source and serves one class of
  ///    ready things.
  /// 4. If nothing else can run, observers of ``RunLoop/Activity/beforeWaiting`` are called, and the loop is asleep.
  ///    Otherwise the descriptor is readable at once, so that the host has its turn between two passes.
  ///
  /// If it is called in a call-out of the loop, or while the loop is run in a call-out of the host, it is a nested run
  /// that polls.
  ///
  /// - Returns: ``RunLoop/RunResult/handledSource`` if a source, a descriptor, a port or the main dispatch queue was
  ///   served; ``RunLoop/RunResult/stopped`` if the loop was stopped: a host then usually ends too, and otherwise the
  ///   guest goes on, unless its thread is stopping; ``RunLoop/RunResult/finished`` if nothing keeps the mode alive, or
  ///   the guest is invalid; ``RunLoop/RunResult/timedOut`` otherwise.
  /// - Precondition: The calling thread is the loop's.
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

  /// Serves what is due, pass after pass, until nothing is due or the time is over: for a program that draws frames,
  /// and has a part of each frame for the loop.
  ///
  /// A call-out is not interrupted, so that this is late by one call-out at most. What is due together counts as one:
  /// the blocks of the main dispatch queue, and timers. What is left is served by the next call, in order.
  ///
  /// - Returns: What the last pass ended with, and what is left.
  /// - Precondition: The calling thread is the loop's.
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

  /// Whether something is due, as the descriptor says it.
  private var isReady: Bool { isDue || (isBetweenServices && (gate as? Gate)?.isOpen ?? false) }

  /// What is left of a loop's work after a part of a frame.
  public struct BudgetReport: Sendable, Hashable {
    /// What the last pass ended with.
    public let result: RunLoop.RunResult
    /// Whether nothing was due at the end.
    public let isDone: Bool
    /// How many blocks, jobs of executors and hand-offs wait, in all modes.
    public let waitingCount: Int
  }

  /// Ends the guest and closes its descriptor: the loop is no longer a guest, or is the guest of the host around it
  /// again.
  ///
  /// The host must no longer watch the descriptor. The observers of ``RunLoop/Activity/exit`` are called if those of
  /// ``RunLoop/Activity/entry`` were. If this is called in a call-out of the loop, the guest is no longer serviced, and
  /// ends when the call-outs are over. Calling it again has no effect.
  ///
  /// - Precondition: The calling thread is the loop's.
  public func invalidate() {
    guard state != .ended else { return }
    loop.requireOwnThread()
    isEnding = true
    if isInnermost, state != .servicing { settle() }
  }

  /// Ends a guest that only slept; returns whether the loop was stopped meanwhile.
  package func endSleep() -> Bool {
    loop.awaken()
    let isStopped = loop.consumeStop(table)
    finish()
    return isStopped
  }

  /// Notes for the instruments in whose loop the guest is.
  package func noteHost(_ host: crl_host) { _ = crl_face_set_host(loop.recorder, host.rawValue) }

  /// Whether the guest sleeps, or is about to be serviced, and no run and no guest is nested in it.
  package var isBetweenServices: Bool { isInnermost && (state == .ready || state == .waiting) }

  /// Whether no run and no guest is nested in this one.
  var isInnermost: Bool { loop.guest === self && loop.innermost.depth == outerRun.depth + 1 }
}

// The loop's thread.
extension RunLoop.Guest {
  /// Wakes up; returns false, asleep again, if there was no reason to wake up.
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

  /// Called after a pass: falls asleep, leaves the gate open for the next pass, or ends if the guest is ending.
  func settle() {
    guard !isEnding else { return finish() }
    state = .servicing
    // A wake-up that arrived after the pass had looked is answered by one more pass.
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

  /// Serves nothing, because the loop's thread is stopping.
  private func reject() -> RunLoop.RunResult {
    loop.awaken()
    gate?.watch(nil, until: .never)
    if let gate { loop.close(gate) }
    return .stopped
  }

  func finish() {
    loop.awaken()
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
    loop.resumeHosting(outerSleep, after: outerRun)
  }

  /// Drops the gate; a thread that is opening it may still hold it.
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
  /// Called after a nested run or guest: lets the guest around it sleep on, or end.
  func resumeHosting(_ sleep: HostedSleep?, after run: Run) {
    if let guest, guest.outerRun.depth >= run.depth { failForGuest() }
    if let sleep { resume(sleep) }
    if let guest, guest.isEnding, guest.isInnermost, guest.state != .servicing { guest.settle() }
  }

  /// Called after a pass of a guest, which must be the innermost again.
  fileprivate func requireNothingLeft(in guest: Guest) {
    if let innermost = self.guest, innermost !== guest { failForGuest() }
  }

  private func failForGuest() -> Never {
    fatalError("a guest of the run loop of \(threadDescription) was made in a call-out and left there")
  }

  /// Ends all guests with the loop's thread, and calls no observer.
  func abandonGuests() {
    if hostedSleep != nil { awaken() }
    guest?.abandon()
    guest = nil
  }
}
