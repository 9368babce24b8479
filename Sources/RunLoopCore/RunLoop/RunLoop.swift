// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// The loop of a thread: it waits for sources, timers, ports and blocks, and calls them on its thread.
///
/// Every thread has at most one loop, ``current``, which is made when it is first asked for and ends with the thread. A
/// loop runs in one mode at a time and serves what is in that mode. Only its own thread runs it; everything else may be
/// called from any thread.
///
/// The corresponding Core Foundation type is `CFRunLoop`, the Foundation class `RunLoop`.
public final class RunLoop: @unchecked Sendable, IdentityHashable {
  // Sendable: each part names what guards it.

  // For any thread.

  let word = WakeWord()
  /// What wakes the loop out of an epoll set or another loop.
  let bell: WakeBell
  let inbox: Inbox
  let table: GuardedModeTable
  let waiter: any Waiter
  /// Whether the waiter is the system's, as it usually is: then it need not be asked for the time.
  let isOnSystemTime: Bool
  let stopFlag = StopFlag()
  let counters = Counters()
  /// The kernel's id of the loop's thread; zero until the thread has asked for the loop.
  package var threadID: Int32 { threadNumber.load(ordering: .relaxed) }
  // Relaxed: a thread finds its own number, which it has stored itself, or another's; nothing else is read by it.
  let threadNumber: Atomic<Int32>
  /// The mode of the innermost run.
  let current = Atomic<UInt>(0)
  // Relaxed: it is for those who ask; who wakes the loop reads the word.
  let waiting = Atomic<Bool>(false)
  /// Whether the innermost run is an automatic guest's, which represents a run of another loop.
  let isServedElsewhere = Atomic<Bool>(false)
  let tracer = Tracer()
  /// The timer slack that the thread is to have, in nanoseconds; zero means the slack that it had before.
  ///
  /// Relaxed: the value is all that is read of it.
  let slack = Atomic<Int64>(0)
  /// The thread that last woke the loop's thread.
  let lastWake = LastWake()
  /// What a call-out does beside the call: ``Tracing``.
  ///
  /// Relaxed: the hook is under a lock of its own, and the ring of the records is acquired. What is set from another
  /// thread is taken up by the level, whose change is ordered.
  let tracing = Atomic<UInt8>(Tracing.off)
  /// The level of the instruments that the loop has taken up; ``Tracing/unknownLevel`` makes it look at ``tracing``.
  ///
  /// Relaxed where the loop compares it in each pass: an old value is noticed in the next.
  let takenLevel = Atomic<UInt32>(0)
  /// The records that are left for those who look from outside.
  ///
  /// The loop's thread writes them; a poster writes the part that is under the inbox's lock.
  let recorder: UnsafeMutablePointer<crl_recorder>
  let face: UnsafeMutablePointer<crl_face>
  /// The last number in the order in which timers were inserted or moved; guarded by the table's lock.
  @exclusivity(unchecked) var lastInsertion: UInt64 = 0
  /// What layers above keep with the loop; guarded by the table's lock.
  @exclusivity(unchecked) var attachments: [ObjectIdentifier: any LoopAttachment] = [:]
  /// Where items were added while the loops were watched; guarded by the table's lock.
  @exclusivity(unchecked) var additions: [ObjectIdentifier: crl_frames] = [:]
  /// The place from which work was first handed over; guarded by the table's lock.
  @exclusivity(unchecked) var handOffPlace: AddedPlace?
  /// Whether the place has been noted from which work was first handed over.
  ///
  /// Relaxed: the place is stored and read under the lock, under which this is asked again.
  let hasNotedHandOff = Atomic<Bool>(false)

  // The loop's thread only.

  @exclusivity(unchecked) var innermost = Run()
  /// Whether a call-out does anything beside the call, and whether that is only what ``Tracing/watch`` demands: the
  /// value of ``tracing`` when the loop last looked at it.
  @exclusivity(unchecked) var isTraced = false
  @exclusivity(unchecked) var isOnlyWatched = false
  @exclusivity(unchecked) var blocks = BlockState()
  @exclusivity(unchecked) var sources = ContiguousArray<Source>()
  @exclusivity(unchecked) var dueTimers = ContiguousArray<DeadlineHeap<Timer>.Due>()
  @exclusivity(unchecked) var calledObservers = CalledObservers()
  /// When the last wait began to sleep for a date, or ``Tick/never`` if it did not.
  @exclusivity(unchecked) var lastSleepBegan = Tick.never
  /// What the wait has found besides the items of the mode.
  @exclusivity(unchecked) var notices: Notices = []
  /// Whether the main dispatch queue's blocks are being run: nested runs do not touch the queue.
  @exclusivity(unchecked) var isDrainingMainQueue = false
  /// How many times the loop has waited or looked, in any mode.
  @exclusivity(unchecked) var waitCount = 0
  /// Whether the current pass has found descriptors, which it is to serve.
  @exclusivity(unchecked) var hasFoundDescriptors = false
  /// The loop of another library in which the loop waits.
  @exclusivity(unchecked) var hostLink: HostLink?
  /// The service that lets the main loop and another library's loop serve each other without a call.
  ///
  /// It is set before another thread knows the loop, and never changed afterwards.
  @exclusivity(unchecked) package var mainService: (any MainLoopService)?
  @exclusivity(unchecked) var looker = Looker()
  /// The service for another library's loop of the thread, on other threads than the main one, once there is such a
  /// loop.
  @exclusivity(unchecked) package var threadService: (any OtherLoopService)?
  /// Whether another library's loop of the thread is served without a call; not used on the main thread.
  @exclusivity(unchecked) package var servesOtherLoop = true
  /// Whether a run that begins has no time limit; nil if none is about to begin.
  @exclusivity(unchecked) var beginsWithoutLimit: Bool?
  /// Whether a run was ever asked for, or a guest has run the loop.
  @exclusivity(unchecked) var hasRun = false
  /// How many runs in a row have found their mode empty.
  @exclusivity(unchecked) var emptyRuns = 0
  /// The innermost guest that the loop is in another loop.
  @exclusivity(unchecked) var guest: Guest?
  /// The sleep that the loop has announced and that another loop sleeps in its place, whose call-outs may run this one.
  @exclusivity(unchecked) var hostedSleep: HostedSleep?
  /// The timer slack that the thread has been set to; zero means the slack that it had before.
  @exclusivity(unchecked) var appliedSlack: Int64 = 0
  /// The class of ready things that is looked at first after the next wait.
  @exclusivity(unchecked) var rotation = 0
  /// The work that a layer above has postponed to a later stage, if it ever has.
  @exclusivity(unchecked) package var deferredWork: (any DeferredWork)?
  /// The item that has received more than its handler has been called with so far, while it calls the handler.
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
  }

  deinit { crl_recorder_give_back(recorder) }
}

extension RunLoop {
  /// The reason why a run ended.
  ///
  /// The raw values are Core Foundation's `CFRunLoopRunResult`.
  public enum RunResult: Int32, Sendable, Hashable {
    /// The mode has nothing left that keeps it alive.
    case finished = 1
    /// The run was stopped.
    case stopped = 2
    /// The time limit of the run is over.
    case timedOut = 3
    /// A source or port was handled, and the run was to return after one.
    case handledSource = 4
  }
}
