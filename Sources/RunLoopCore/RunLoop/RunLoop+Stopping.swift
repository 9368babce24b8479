// SPDX-License-Identifier: Apache-2.0

import Synchronization

// Stopping and waking, from any thread.
extension RunLoop {
  /// Wakes the loop if it sleeps, to look for what was posted.
  @inline(__always)
  func post() {
    guard word.hasSleeper else { return }
    // Before it can go on to its next sleep, which somebody else ends.
    noteWaking()
    let sleeper = word.post()
    if sleeper != .nobody { wake(sleeper) }
  }

  /// Makes the call that wakes the loop's thread, in the way in which it sleeps.
  private func wake(_ sleeper: WakeState.Sleeper) {
    // Whoever is woken asks himself whether a look would have been enough.
    if sleeper == .futex || sleeper == .epoll { wakeTime.store(SystemWaiter.now.nanoseconds, ordering: .relaxed) }
    if sleeper == .futex || sleeper == .virtual { word.wakeSleeper() }
    // The set or gate that the loop waits at cannot be closed under this: it is held here and by the loop.
    if sleeper == .epoll || sleeper == .virtual { table.withLock { $0.waitingIn }?.wakeDescriptor.wake() }
    if sleeper == .hosted { table.withLock { $0.waitingAt }?.open() }
  }

  /// Ends the innermost run that is active, after the pass that it is in.
  ///
  /// Without an active run, the stop is forgotten. Can be called from any thread. A sleeping loop is woken. The
  /// corresponding Core Foundation function is `CFRunLoopStop`.
  public func stop() {
    // Under the lock that the loop takes before it sleeps.
    if table.withLock({ _ in stopFlag.stop() }) { post() }
  }

  /// Ends the next run of a mode that comes to the end of a pass, also one that is yet to begin.
  ///
  /// The mode is made if it does not exist. Can be called from any thread. A sleeping loop is woken. The corresponding
  /// Core Foundation function is `_CFRunLoopStopMode`.
  ///
  /// ``Mode/common`` is no mode, and nothing happens.
  public func stop(mode name: Mode) {
    guard name != .common else { return }
    table.withLock { table in
      if !table.isDead { table.mode(name).isStopped.store(true, ordering: .releasing) }
    }
    post()
  }

  /// Ends every run of this loop, and every run that is yet to begin: the loop's thread is stopping.
  package func stopForGood() {
    table.withLock { _ in stopFlag.endEveryRun() }
    post()
  }

  /// Lets a sleeping loop make one more pass, and keeps an awake one from sleeping in this pass.
  ///
  /// Outside a run nothing happens. Can be called from any thread. The corresponding Core Foundation function is
  /// `CFRunLoopWakeUp`.
  public func wakeUp() {
    table.checkFork()
    if word.hasSleeper { noteWaking() }
    wake(word.apply(.wakeUp).woken)
  }
}
