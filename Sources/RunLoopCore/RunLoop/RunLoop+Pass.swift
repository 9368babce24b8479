// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

extension RunLoop {
  /// Makes the passes of one run; the numbers are those of the phases in the article about the pass.
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

      // 11. Not `… && putsOffServing(mode)`: its closure would hold the loop during calls that may end the thread.
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

// What the pass asks and notes.
extension RunLoop {
  /// Makes wake-ups count for the coming wait from now on; returns true if one has arrived since the last wait ended.
  @inline(__always)
  @discardableResult
  func beginPass() -> Bool {
    takeUpLevel()
    return word.apply(.beginPass).before.isLate
  }

  /// Keeps the coming wait from a sleep if the mode has become empty since it was asked.
  ///
  /// Another thread may have taken the last item out and woken the loop meanwhile, when no wait was before it for which
  /// a wake-up counts. Relaxed: the change of the word that made wake-ups count comes before.
  @inline(__always)
  func noteEmptied(_ mode: ModeState) {
    if mode.itemCount.load(ordering: .relaxed) == 0, isEmpty(mode) { word.apply(.wakeUp(.unknown)) }
  }

  /// Whether the mode has nothing that keeps it alive: no source, port or timer, no main queue, and no block that it
  /// could run.
  ///
  /// It is checked before a run and at the end of each pass, never before the wait.
  @inline(__always)
  func isEmpty(_ mode: ModeState) -> Bool {
    // The first hand-off adds the mode's source.
    takeArrivals()
    return mode.itemCount.load(ordering: .relaxed) == 0 && !hasBlock(mode) && !isServingMainQueue(mode)
      && !isKeptAliveByHost(mode)
  }

  /// Whether the main dispatch queue keeps the mode alive, as it does on the main loop except in runs nested in one of
  /// the queue's own blocks.
  func isServingMainQueue(_ mode: ModeState) -> Bool {
    mode.servesMainQueue.load(ordering: .relaxed) && !isDrainingMainQueue
  }

  /// Whether a pass of the mode would find something to run now: a block, or a signalled source.
  @inline(__always)
  func isRunnable(_ mode: ModeState) -> Bool {
    takeArrivals()
    return hasBlock(mode) || hasHandOff(mode) || hasSignalledSource(mode)
  }

  /// Calls the observers of the stage before the wait, and notes whether one of them adds work for the loop each time.
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

  /// Whether the part of a frame that a guest has is over.
  var isBudgetOver: Bool { innermost.budgetEnd != .never && tickNow >= innermost.budgetEnd }

  /// Whether the innermost run, the mode or every run is to stop.
  func isStopped(_ mode: ModeState) -> Bool { stopFlag.isSet || mode.isStopped.load(ordering: .relaxed) }

  /// Answers a stop of the innermost run, of the mode, or of every run.
  func consumeStop(_ mode: ModeState) -> Bool {
    if stopFlag.consume() || stopFlag.isEnding { return true }
    return mode.isStopped.load(ordering: .acquiring) && mode.isStopped.exchange(false, ordering: .acquiringAndReleasing)
  }
}

// Phases 2, 3, 8 and 10: observers, which are called at the entry and the exit too.
extension RunLoop {
  /// Calls the observers of one stage, as they are in the mode when the stage begins.
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
