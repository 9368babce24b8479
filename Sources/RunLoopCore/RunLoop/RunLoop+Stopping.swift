// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import Synchronization

// Stopping and waking, from any thread.
extension RunLoop {
  /// Wakes the loop if it sleeps, so that it looks for what was posted.
  ///
  /// - Parameter cause: What was posted; the loop begins with it if this call wakes the loop.
  @inline(__always)
  func post(_ cause: @autoclosure () -> WakeState.Cause = .unknown) {
    guard word.hasSleeper else { return }
    // Noted before the loop can go on to its next sleep, which something else ends.
    noteWaking()
    let sleeper = word.post(cause())
    if sleeper != .nobody { wake(sleeper) }
  }

  /// Makes the call that wakes the loop's thread, in the way in which it sleeps.
  private func wake(_ sleeper: WakeState.Sleeper) {
    // The woken thread checks whether a look would have been enough.
    if sleeper == .futex || sleeper == .epoll { lastWake.record() }
    if sleeper == .futex || sleeper == .virtual { word.wakeSleeper() }
    if sleeper == .epoll || sleeper == .virtual { bell.ring() }
    // The gate that the loop waits at cannot be closed meanwhile: it is held here and by the loop.
    if sleeper == .hosted { table.withLock { $0.waitingAt }?.open() }
  }

  /// Takes the loop out of its sleep, if it sleeps, in a way that can be used in a signal handler: without a lock or an
  /// allocation, by a descriptor that is open as long as the loop, and with `errno` as it was.
  ///
  /// The word is changed even if the loop does not sleep: either this change comes first, and the loop's announcement
  /// that it sleeps reads it, and the loop then finds what was stored before it; or the announcement does, and this
  /// finds the sleeper.
  @inline(__always)
  private func rouse(by event: WakeState.Event) {
    if word.hasSleeper { noteWaking() }
    let sleeper = word.apply(event).woken
    if sleeper != .nobody { wakeKeepingError(sleeper) }
  }

  @inline(never)
  private func wakeKeepingError(_ sleeper: WakeState.Sleeper) {
    let number = errno
    if sleeper != .hosted || !bell.ringInHost(isHere: isCurrent) { wake(sleeper) }
    errno = number
  }

  /// Ends the innermost run that is active, after the pass that it is in.
  ///
  /// Without an active run, the stop is forgotten. A sleeping loop is woken. Can be called from any thread, and in a
  /// signal handler, on a loop that was obtained before: it takes no lock, allocates nothing and leaves `errno` as it
  /// was. To do more than this at a signal, use a `SignalSource` of `RunLoopSystemEvents`. The corresponding Core
  /// Foundation function is `CFRunLoopStop`, which must not be called in a signal handler.
  public func stop() {
    table.checkFork()
    if stopFlag.stop() { rouse(by: .post(.unknown)) }
  }

  /// Ends the next run of a mode that reaches the end of a pass, even one that has not begun yet.
  ///
  /// The mode is made if it does not exist. Can be called from any thread. A sleeping loop is woken. The corresponding
  /// Core Foundation function is `_CFRunLoopStopMode`.
  ///
  /// ``Mode/common`` is not a mode; the call then has no effect.
  public func stop(mode name: Mode) {
    guard name != .common else { return }
    table.withLock { table in
      if !table.isDead { table.mode(name).isStopped.store(true, ordering: .releasing) }
    }
    post()
  }

  /// Ends every run of this loop, and every run that has not begun yet, because the loop's thread is stopping.
  package func stopForGood() {
    table.withLock { _ in stopFlag.endEveryRun() }
    post()
  }

  /// Makes a sleeping loop make one more pass, and keeps a loop that is awake from sleeping in this pass.
  ///
  /// Outside a run it has no effect. Can be called from any thread, and in a signal handler, as ``stop()`` can. The
  /// corresponding Core Foundation function is `CFRunLoopWakeUp`, which must not be called in a signal handler.
  public func wakeUp() {
    table.checkFork()
    rouse(by: .wakeUp(cause(.source) { $0.mayHaveSignalled.load(ordering: .relaxed) }))
  }

  /// A cause if it concerns the mode that runs, otherwise unknown: then the loop sleeps on, and what wakes it next may
  /// have come earlier.
  func cause(_ cause: WakeState.Cause, concerns: (ModeState) -> Bool) -> WakeState.Cause {
    guard let mode = UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring)) else { return .unknown }
    return Unmanaged<ModeState>.fromOpaque(mode)._withUnsafeGuaranteedRef { concerns($0) ? cause : .unknown }
  }

  /// A cause if it concerns the mode that runs because that is one of some modes.
  func cause(_ cause: WakeState.Cause, inModes modes: [Mode]) -> WakeState.Cause {
    self.cause(cause) { running in
      modes.contains { $0 == .common ? running.isCommon.load(ordering: .relaxed) : $0 == running.name }
    }
  }
}
