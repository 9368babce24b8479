// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// Ends our loop's sleep while a run of Core Foundation's main loop serves it.
///
/// It has no descriptor. It wakes that loop in the same way as any caller, which does not count as a handled source.
final class TurnGate: SleepGate, @unchecked Sendable {
  // Sendable: only the main thread uses the variables that are not atomic.

  private let mode: ServedMode
  private let loop: RunLoopCore.RunLoop
  // Relaxed when it is closed: the loop then announces its sleep in its state word, and checks for work left by an
  // opener whose store was overwritten. That opener changed the word before.
  private let isOpened = Atomic<Bool>(false)
  /// Whether Core Foundation's loop is sleeping or about to sleep, after its observers were notified.
  ///
  /// Relaxed: only the main thread stores it, and other threads that open the gate do not depend on it.
  private let isHostWaiting = Atomic<Bool>(false)
  private var watched: OwnedDescriptor?
  private var deadline = Tick.never
  /// Whether the timer has fired for the deadline.
  private var isTimerSpent = false
  var isRetired = false
  let isWatchedByEdge = true

  /// The eventfd that wakes Core Foundation's main loop, which exists as long as the process.
  let wakeNumber: Int32

  init(_ mode: ServedMode, _ loop: RunLoopCore.RunLoop) {
    self.mode = mode
    self.loop = loop
    wakeNumber = rlk_wake_number(Unmanaged.passUnretained(mode.runLoop).toOpaque())
    loop.noteHost(sleeps: false)
  }

  var isOpen: Bool { isOpened.load(ordering: .acquiring) || loop.isRung }

  func open() {
    isOpened.store(true, ordering: .releasing)
    // On the main thread, the service checks before that loop waits, so a wake-up is necessary only after that check.
    let isHere = RunLoopCore.RunLoop.currentIfMade === loop
    if !isHere || isHostWaiting.load(ordering: .relaxed) { CFRunLoopWakeUp(mode.runLoop) }
  }

  /// Always false, because Core Foundation's loop requests a service in the same way for everything.
  var wasOpenedByEvent: Bool { false }

  func close() { isOpened.store(false, ordering: .relaxed) }

  func watch(_ descriptor: OwnedDescriptor?, until deadline: Tick) {
    if watched !== descriptor {
      watched = descriptor
      mode.items.watch(descriptor)
    }
    if self.deadline != deadline || isTimerSpent {
      self.deadline = deadline
      isTimerSpent = false
      mode.items.setTimer(deadline)
    }
  }

  /// Called when the observers of Core Foundation's loop report a wait, which must not sleep if there is work to do.
  ///
  /// `isDue` is evaluated after the wait was recorded, because a signal handler may wake our loop in between.
  func hostWillWait(isDue: @autoclosure () -> Bool) {
    isHostWaiting.store(true, ordering: .relaxed)
    loop.noteHost(sleeps: true)
    if isDue() { CFRunLoopWakeUp(mode.runLoop) }
  }

  func hostHasWaited() {
    isHostWaiting.store(false, ordering: .relaxed)
    loop.noteHost(sleeps: false)
  }

  /// Called when a nested turn has ended, so that this turn determines again whether the host may sleep.
  func resume() { loop.noteHost(sleeps: isHostWaiting.load(ordering: .relaxed)) }

  /// Called when the timer has fired.
  ///
  /// The timer is set again if it fired too early.
  func deadlineCame() {
    isTimerSpent = true
    open()
  }
}
