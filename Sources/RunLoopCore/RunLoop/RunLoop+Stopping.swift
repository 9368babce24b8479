// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import Synchronization

// Stopping and waking the loop from any thread.
extension RunLoop {
  /// Wakes the loop, if it sleeps, to check for new posts.
  ///
  /// - Parameter cause: The kind of work that was posted. If this call wakes the loop, the loop serves it first.
  @inline(__always)
  func post(_ cause: @autoclosure () -> WakeState.Cause = .unknown) {
    guard word.hasSleeper else { return }
    // Noted before the loop can proceed to its next sleep, which something else ends.
    noteWaking()
    let sleeper = word.post(cause())
    if sleeper != .nobody { wake(sleeper) }
  }

  /// Wakes the loop's thread by the mechanism with which it sleeps.
  private func wake(_ sleeper: WakeState.Sleeper) {
    // The woken thread uses the record to decide whether polling would have sufficed.
    if sleeper == .futex || sleeper == .epoll { lastWake.record() }
    if sleeper == .futex || sleeper == .virtual { word.wakeSleeper() }
    if sleeper == .epoll || sleeper == .virtual { bell.ring() }
    // The gate stays open meanwhile because both the loop and this call hold it.
    if sleeper == .hosted { table.withLock { $0.waitingAt }?.open() }
  }

  /// Wakes the loop if it sleeps, in an async-signal-safe way.
  ///
  /// It takes no lock, allocates nothing, uses a descriptor that stays open as long as the loop exists, and preserves
  /// `errno`.
  ///
  /// The word is changed even if the loop does not sleep. If this change precedes the loop's announcement of its
  /// sleep, the loop reads it and sees everything stored before it; otherwise this call sees the sleeper.
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

  /// Ends the innermost active run after its current pass.
  ///
  /// If no run is active, the call has no effect. A sleeping loop is woken. Can be called from any thread, and from a
  /// signal handler if the loop was obtained before: the call takes no lock, allocates nothing and preserves `errno`.
  /// To do more in response to a signal, use a `SignalSource` from `RunLoopSystemEvents`. The corresponding Core
  /// Foundation function is `CFRunLoopStop`, which must not be called in a signal handler.
  public func stop() {
    table.checkFork()
    if stopFlag.stop() { rouse(by: .post(.unknown)) }
  }

  /// Ends the next run of a mode that reaches the end of a pass, even one that has not begun yet.
  ///
  /// The mode is created if it does not exist; ``Mode/common`` is not a mode, and stopping it has no effect. A sleeping
  /// loop is woken. Can be called from any thread. The corresponding Core Foundation function is `_CFRunLoopStopMode`.
  public func stop(mode name: Mode) {
    guard name != .common else { return }
    table.withLock { table in
      if !table.isDead { table.mode(name).isStopped.store(true, ordering: .releasing) }
    }
    post()
  }

  /// Ends all current and future runs of this loop, because the loop's thread is stopping.
  package func stopForGood() {
    table.withLock { _ in stopFlag.endEveryRun() }
    post()
  }

  /// Makes a sleeping loop perform another pass, or keeps a loop that is awake from sleeping in its current pass.
  ///
  /// Outside a run, the call has no effect. Can be called from any thread and, like ``stop()``, from a signal handler.
  /// The corresponding Core Foundation function is `CFRunLoopWakeUp`, which must not be called in a signal handler.
  public func wakeUp() {
    table.checkFork()
    rouse(by: .wakeUp(cause(.source) { $0.mayHaveSignalled.load(ordering: .relaxed) }))
  }

  /// Returns the cause if it concerns the mode that runs.
  ///
  /// Otherwise returns unknown: the loop sleeps again, and the event that wakes it next may have occurred earlier.
  func cause(_ cause: WakeState.Cause, concerns: (ModeState) -> Bool) -> WakeState.Cause {
    guard let mode = UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring)) else { return .unknown }
    return Unmanaged<ModeState>.fromOpaque(mode)._withUnsafeGuaranteedRef { concerns($0) ? cause : .unknown }
  }

  /// Returns the cause if the mode that runs is one of the given modes.
  func cause(_ cause: WakeState.Cause, inModes modes: [Mode]) -> WakeState.Cause {
    self.cause(cause) { running in
      modes.contains { $0 == .common ? running.isCommon.load(ordering: .relaxed) : $0 == running.name }
    }
  }
}
