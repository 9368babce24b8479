// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// What ends our loop's sleep while a run of Core Foundation's main loop serves it.
///
/// It has no descriptor: it wakes that loop as any caller does, which is handled as no source.
final class TurnGate: SleepGate, @unchecked Sendable {
  // Sendable: what is no atomic belongs to the main thread.

  private let mode: ServedMode
  private let loop: RunLoopCore.RunLoop
  // Relaxed where it is closed: the loop then announces its sleep in its word, and looks for what an opener that was
  // overwritten has left; the opener has been in the word before.
  private let isOpened = Atomic<Bool>(false)
  /// Core Foundation's loop is about to sleep, or sleeps: its observers have been notified.
  ///
  /// Relaxed: only the main thread stores it, and another thread that opens the gate does not go by it.
  private let isHostWaiting = Atomic<Bool>(false)
  private var watched: OwnedDescriptor?
  private var deadline = Tick.never
  /// The timer has fired for the deadline.
  private var isTimerSpent = false
  var isRetired = false
  let isWatchedByEdge = true

  /// The number of the counter that wakes Core Foundation's main loop, which stays as long as the process.
  let wakeNumber: Int32

  init(_ mode: ServedMode, _ loop: RunLoopCore.RunLoop) {
    self.mode = mode
    self.loop = loop
    wakeNumber = rlk_wake_number(Unmanaged.passUnretained(mode.runLoop).toOpaque())
    loop.noteHost(sleeps: false)
  }

  /// Whether the gate is open.
  var isOpen: Bool { isOpened.load(ordering: .acquiring) || loop.isRung }

  func open() {
    isOpened.store(true, ordering: .releasing)
    // On the main thread the service looks before that loop waits, and need not wake it unless it has looked.
    let isHere = RunLoopCore.RunLoop.currentIfMade === loop
    if !isHere || isHostWaiting.load(ordering: .relaxed) { CFRunLoopWakeUp(mode.runLoop) }
  }

  /// Not known: Core Foundation's loop asks for a service in the same way for everything.
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

  /// The observers of Core Foundation's loop are notified of a wait; if there is something to be done it is not to
  /// sleep.
  ///
  /// Whether something is to be done is asked after the wait was noted: a signal handler on this thread may wake our
  /// loop between the two.
  func hostWillWait(isDue: @autoclosure () -> Bool) {
    isHostWaiting.store(true, ordering: .relaxed)
    loop.noteHost(sleeps: true)
    if isDue() { CFRunLoopWakeUp(mode.runLoop) }
  }

  func hostHasWaited() {
    isHostWaiting.store(false, ordering: .relaxed)
    loop.noteHost(sleeps: false)
  }

  /// A turn that was nested in this one has ended: whether the host may sleep is this one's to say again.
  func resume() { loop.noteHost(sleeps: isHostWaiting.load(ordering: .relaxed)) }

  /// The timer has fired, and is to be set again if it was too early.
  func deadlineCame() {
    isTimerSpent = true
    open()
  }
}
