// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// A thread's run loop, which waits for sources, timers, ports and blocks and calls them on the thread.
///
/// Each thread has at most one loop, ``current``, which is created on first access and ends with the thread. A loop
/// runs in one mode at a time and serves that mode's items. Only its own thread can run it; other methods can be
/// called from any thread unless they state otherwise.
///
/// The corresponding Core Foundation type is `CFRunLoop`, the Foundation class `RunLoop`.
public final class RunLoop: @unchecked Sendable, IdentityHashable {
  // Sendable: each part's comment states what guards it.

  // Used from any thread.

  let word = WakeWord()
  /// Wakes the loop when it waits in an epoll set or in another loop.
  let bell: WakeBell
  let inbox: Inbox
  let table: GuardedModeTable
  let waiter: any Waiter
  /// Whether the waiter is the system's, as is usual, so that the time can be read without calling it.
  let isOnSystemTime: Bool
  let stopFlag = StopFlag()
  let counters = Counters()
  /// The kernel's id of the loop's thread, or zero until the thread has accessed the loop.
  package var threadID: Int32 { threadNumber.load(ordering: .relaxed) }
  // Relaxed ordering suffices: a thread compares it with its own id only, and no other data depends on the value.
  let threadNumber: Atomic<Int32>
  /// The address of the innermost run's mode.
  let current = Atomic<UInt>(0)
  // Relaxed ordering suffices because the value is informational; the thread that wakes the loop reads the word.
  let waiting = Atomic<Bool>(false)
  /// Whether the innermost run belongs to an automatic guest, so that it represents a run of another loop.
  let isServedElsewhere = Atomic<Bool>(false)
  let tracer = Tracer()
  /// The requested timer slack of the thread in nanoseconds, or zero for the original slack.
  ///
  /// Relaxed ordering suffices because no other data depends on the value.
  let slack = Atomic<Int64>(0)
  /// The thread that last woke the loop's thread.
  let lastWake = LastWake()
  /// The ``Tracing`` flags: the additional steps that a call-out performs around the call.
  ///
  /// Relaxed ordering suffices: a lock guards the hook, and the record ring is read with acquire ordering. Values set
  /// by another thread take effect through the level, whose change is ordered.
  let tracing = Atomic<UInt8>(Tracing.off)
  /// The instrument level that the loop has applied, or ``Tracing/unknownLevel`` to make it read ``tracing`` again.
  ///
  /// The comparison in each pass is relaxed; a stale value is noticed in the next pass.
  let takenLevel = Atomic<UInt32>(0)
  /// The records kept for tools that inspect the process.
  ///
  /// They are written by the loop's thread, except for a part that posters write under the inbox's lock.
  let recorder: UnsafeMutablePointer<crl_recorder>
  let face: UnsafeMutablePointer<crl_face>
  /// The sequence number last assigned to an inserted or moved timer, guarded by the table's lock.
  @exclusivity(unchecked) var lastInsertion: UInt64 = 0
  /// Objects that higher layers attach to the loop, guarded by the table's lock.
  @exclusivity(unchecked) var attachments: [ObjectIdentifier: any LoopAttachment] = [:]
  /// Where items were added while the loops were watched, guarded by the table's lock.
  @exclusivity(unchecked) var additions: [ObjectIdentifier: crl_frames] = [:]
  /// The call site of the first hand-off, guarded by the table's lock.
  @exclusivity(unchecked) var handOffPlace: AddedPlace?
  /// Whether the call site of the first hand-off has been noted.
  ///
  /// Relaxed ordering suffices because the flag is checked again under the lock that guards the call site.
  let hasNotedHandOff = Atomic<Bool>(false)

  // Used only on the loop's thread, except for `mainService`.

  @exclusivity(unchecked) var innermost = Run()
  /// Whether a call-out does more than make the call, and whether that is only what ``Tracing/watch`` requires, as of
  /// the loop's last read of ``tracing``.
  @exclusivity(unchecked) var isTraced = false
  @exclusivity(unchecked) var isOnlyWatched = false
  @exclusivity(unchecked) var blocks = BlockState()
  @exclusivity(unchecked) var sources = ContiguousArray<Source>()
  /// The number of references to the loop that its timers have released and its next timers reuse.
  @exclusivity(unchecked) var spareReferences = 0
  @exclusivity(unchecked) var dueTimers = ContiguousArray<DeadlineHeap<Timer>.Due>()
  @exclusivity(unchecked) var calledObservers = CalledObservers()
  /// When the last wait began to sleep with a deadline, or ``Tick/never`` if it did not.
  @exclusivity(unchecked) var lastSleepBegan = Tick.never
  /// Events outside the mode's items that the wait has found.
  @exclusivity(unchecked) var notices: Notices = []
  /// Whether the main dispatch queue's blocks are running, so that nested runs do not touch the queue.
  @exclusivity(unchecked) var isDrainingMainQueue = false
  /// The number of times the loop has waited or polled, in any mode.
  @exclusivity(unchecked) var waitCount = 0
  /// Whether the current pass has found descriptors that it must serve.
  @exclusivity(unchecked) var hasFoundDescriptors = false
  /// The other library's loop in which this loop waits.
  @exclusivity(unchecked) var hostLink: HostLink?
  /// The service with which the main loop and another library's loop serve each other automatically.
  ///
  /// It is set before another thread can access the loop, and never changed afterwards.
  @exclusivity(unchecked) package var mainService: (any MainLoopService)?
  @exclusivity(unchecked) var looker = Looker()
  /// The service for another library's loop of the thread, if there is one; not used on the main thread.
  @exclusivity(unchecked) package var threadService: (any OtherLoopService)?
  /// Whether another library's loop of the thread is served automatically; not used on the main thread.
  @exclusivity(unchecked) package var servesOtherLoop = true
  /// Whether the run about to begin has no time limit, or `nil` if none is about to begin.
  @exclusivity(unchecked) var beginsWithoutLimit: Bool?
  /// Whether the loop was ever run, directly or as a guest.
  @exclusivity(unchecked) var hasRun = false
  /// The number of consecutive runs that found their mode empty.
  @exclusivity(unchecked) var emptyRuns = 0
  /// The innermost guest that represents this loop in another loop.
  @exclusivity(unchecked) var guest: Guest?
  /// The announced sleep that another loop, whose call-outs may run this one, performs for it.
  @exclusivity(unchecked) var hostedSleep: HostedSleep?
  /// The timer slack that was last applied to the thread in nanoseconds, or zero for the original slack.
  @exclusivity(unchecked) var appliedSlack: Int64 = 0
  /// The class of ready events that is checked first after the next wait.
  @exclusivity(unchecked) var rotation = 0
  /// Work that a higher layer has postponed to a later phase, if any.
  @exclusivity(unchecked) package var deferredWork: (any DeferredWork)?
  /// The item whose handler is running and which has received data that the handler has not been passed yet.
  @exclusivity(unchecked) package var unreadItem: (any UnreadItem)?

  init(threadID: Int32, waiter: any Waiter, mainQueueHandle: MainQueue.Handle? = nil) {
    self.threadNumber = Atomic(threadID)
    bell = WakeBell()
    self.table = GuardedModeTable(mainQueueHandle: mainQueueHandle, bell: bell)
    self.waiter = waiter
    self.isOnSystemTime = waiter is SystemWaiter
    recorder = RunLoop.takeRecorder()
    face = recorder.face
    inbox = Inbox(recorder)
    crl_recorder_set_loop(recorder, itemAddress(self))
    // Posts may arrive before the first pass.
    takeUpLevel()
    _ = RunLoop.firstWake
  }

  /// Stops and wakes nothing, so that the first stop and wake of a loop are not in a signal handler: in a debug build,
  /// they make types known to the Swift runtime, which takes locks for that.
  private static let firstWake: Void = {
    let flag = StopFlag()
    _ = flag.begin()
    _ = flag.stop()
    let word = WakeWord()
    _ = word.post()
    word.apply(.post(.unknown))
    word.wakeSleeper()
    LastWake().record()
    WakeBell().ring()
  }()

  deinit { crl_recorder_give_back(recorder) }
}

extension RunLoop {
  /// The reason why a run ended.
  ///
  /// The raw values are Core Foundation's `CFRunLoopRunResult`.
  public enum RunResult: Int32, Sendable, Hashable {
    /// Nothing keeps the mode alive.
    case finished = 1
    /// The run was stopped.
    case stopped = 2
    /// The run's time limit was reached.
    case timedOut = 3
    /// A source or port was handled in a run that returns after one.
    case handledSource = 4
  }
}
