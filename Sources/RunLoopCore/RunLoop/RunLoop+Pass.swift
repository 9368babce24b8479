// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

extension RunLoop {
  /// Runs the passes of one run, with the phase numbers of the article about the pass.
  func makePasses(_ mode: ModeState) -> RunResult {
    while true {
      if beginPass(), !innermost.staysWhenEmpty { noteEmptied(mode) }  // 1
      notify(.beforeTimers, mode)  // 2
      notify(.beforeSources, mode)  // 3
      performBlocks(mode)  // 4
      var handledSource = performSources(mode)  // 5
      if handledSource, !isBudgetOver { performBlocks(mode) }  // 6

      if !isMainQueueReady(mode) {  // 7
        let polls = innermost.polls || handledSource
        if !polls { notifyBeforeWaiting(mode) }  // 8
        wait(mode, polls: polls)  // 9
        if !polls { notify(.afterWaiting, mode) }  // 10
      }

      // 11. Not `… && putsOffServing(mode)`: its closure would retain the loop during calls that may end the thread.
      var isPutOff = false
      if innermost.wakeCause != .unknown { isPutOff = putsOffServing(mode) }
      if isPutOff {
        if isServedByHost() { handledSource = true }
      } else if serveOneClass(mode) {
        handledSource = true
      }
      if !isBudgetOver { performBlocks(mode) }  // 12

      // 13
      if innermost.returnsAfterSource && handledSource { return .handledSource }
      if isTimeOver { return .timedOut }
      if consumeStop(mode) { return .stopped }
      if isEmpty(mode), !innermost.staysWhenEmpty { return .finished }
    }
  }
}

// Checks and bookkeeping of the pass.
extension RunLoop {
  /// Makes later wake-ups count for the coming wait, and returns whether one has arrived since the last wait ended.
  @inline(__always)
  @discardableResult
  func beginPass() -> Bool {
    takeUpLevel()
    return word.apply(.beginPass).before.isLate
  }

  /// Prevents the coming wait from sleeping if the mode has become empty since the last check.
  ///
  /// Another thread may have removed the last item and woken the loop before wake-ups counted for the coming wait. The
  /// load can be relaxed because it follows the change of the word that made wake-ups count.
  @inline(__always)
  func noteEmptied(_ mode: ModeState) {
    if mode.itemCount.load(ordering: .relaxed) == 0, isEmpty(mode) { word.apply(.wakeUp(.unknown)) }
  }

  /// Whether nothing keeps the mode alive: no source, port or timer, no main queue, and no block that it could run.
  ///
  /// Checked before a run and at the end of each pass, never before the wait.
  @inline(__always)
  func isEmpty(_ mode: ModeState) -> Bool {
    // The first hand-off to a mode adds its source, so the arrivals are taken first.
    takeArrivals()
    return mode.itemCount.load(ordering: .relaxed) == 0 && !hasBlock(mode) && !isServingMainQueue(mode)
      && !isKeptAliveByHost(mode)
  }

  /// Whether the main dispatch queue keeps the mode alive.
  ///
  /// On the main loop it does, except in runs nested in one of the queue's own blocks.
  func isServingMainQueue(_ mode: ModeState) -> Bool {
    mode.servesMainQueue.load(ordering: .relaxed) && !isDrainingMainQueue
  }

  /// Whether a pass in this mode would find a block or a signalled source to run now.
  @inline(__always)
  func isRunnable(_ mode: ModeState) -> Bool {
    takeArrivals()
    return hasBlock(mode) || hasHandOff(mode) || hasSignalledSource(mode)
  }

  /// Calls the before-waiting observers, and tracks whether they add work for the loop on every pass.
  @inline(__always)
  func notifyBeforeWaiting(_ mode: ModeState) {
    guard mode.mayHaveObservers(of: .beforeWaiting) else { return }
    let wasRunnable = isRunnable(mode)
    notify(.beforeWaiting, mode)
    let isSpinning = !wasRunnable && isRunnable(mode)
    innermost.sleeplessPasses = isSpinning ? innermost.sleeplessPasses + 1 : 0
    if innermost.sleeplessPasses == Run.mostSleeplessPasses {
      Diagnostic.sleepless.report(
        "an observer of the run loop of \(threadDescription) has posted work before each of "
          + "\(Run.mostSleeplessPasses) waits in the mode \(mode.name): the loop never sleeps; post that work later, or from a timer"
      )
    }
  }

  @inline(__always)
  private var isTimeOver: Bool {
    innermost.polls || (innermost.deadline != .never && tickNow >= innermost.deadline)
  }

  /// Whether the loop's thread is stopping, so that every run ends.
  package var isEnding: Bool { stopFlag.isEnding }

  /// Whether the guest has used up its share of the current frame.
  var isBudgetOver: Bool { innermost.budgetEnd != .never && tickNow >= innermost.budgetEnd }

  /// Whether the innermost run, the mode or every run has been asked to stop.
  func isStopped(_ mode: ModeState) -> Bool { stopFlag.isSet || mode.isStopped.load(ordering: .relaxed) }

  /// Consumes a request to stop the innermost run or the mode; a request to stop every run stays in effect.
  func consumeStop(_ mode: ModeState) -> Bool {
    if stopFlag.consume() || stopFlag.isEnding { return true }
    return mode.isStopped.load(ordering: .acquiring) && mode.isStopped.exchange(false, ordering: .acquiringAndReleasing)
  }
}

// Phases 2, 3, 8 and 10: observers. They are also called at the entry and the exit of a run.
extension RunLoop {
  /// Calls the observers that are in the mode when the activity begins.
  @inline(__always)
  func notify(_ activity: Activity, _ mode: ModeState) {
    if mode.mayHaveObservers(of: activity) { notifyObservers(activity, mode) }
  }

  @inline(never)
  private func notifyObservers(_ activity: Activity, _ mode: ModeState) {
    trace(.activity(activity), mode)
    if let lists = mode.observers(of: activity, of: self) { ObserverLists.call(activity, of: lists, by: self) }
  }
}
