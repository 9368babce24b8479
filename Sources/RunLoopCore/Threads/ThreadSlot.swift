// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import Synchronization

// A thread's loop is kept in a thread-local slot of the thread itself. No table is keyed by a thread's id, which the
// system reuses as soon as the thread is gone.
extension RunLoop {
  /// The loop of the calling thread, which is made when it is first asked for.
  ///
  /// It is the same loop until the thread ends. A thread that the system made still has it in the first round of the
  /// destructors of thread-specific data; the loop ends in the second round, and a destructor that asks later gets a
  /// loop that has ended. A `Thread` of this package ends its loop before any destructor runs. On the main thread it is
  /// ``main``. The corresponding Core Foundation function is `CFRunLoopGetCurrent`.
  ///
  /// - Complexity: O(1), without a system call after the first request.
  public static var current: RunLoop {
    if let slot = crl_thread_slot_get() { return loop(in: slot) }
    if isMainThread { return attach(processMain) }
    if let promised = LoopPromise.installed?.loop { return attach(promised) }
    return attach(RunLoop(threadID: callingThreadID, waiter: SystemWaiter.shared))
  }

  /// The loop of the main thread, from any thread.
  ///
  /// In a program with an `async` main the main thread leaves early, at the first suspension. Its loop has then ended:
  /// it rejects everything, with ``RunLoopError/mainThreadHasLeft`` from calls that can throw.
  ///
  /// In a test with `VirtualTime.asMain` of RunLoopTesting, it is the test's own loop for code that runs on the test's
  /// thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopGetMain`.
  public static var main: RunLoop {
    // It costs other programs four instructions: the slot's address, its value, a test and a branch.
    if let standIn = crl_main_slot_get() { return Unmanaged<RunLoop>.fromOpaque(standIn).takeUnretainedValue() }
    return processMain
  }

  /// The loop of the process's first thread, even if another stands in for it on the calling thread.
  ///
  /// Can be called from any thread.
  package static var processMain: RunLoop {
    if let main = loop(at: mainAddress.load(ordering: .acquiring)) { return main }
    let hasLeft = mainThreadHasLeft
    let made = RunLoop(
      threadID: getpid(), waiter: SystemWaiter.shared,
      mainQueueHandle: ForkGeneration.isForkedChild || hasLeft ? nil : MainQueue.madeHandle)
    if !hasLeft { LoadHook.mainLoopIsMade.call(made) }
    // If several threads ask first, one of them makes the loop that stays. Until then nothing but the loop itself may
    // refer to it: the others are released.
    let address = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = mainAddress.compareExchange(
      expected: 0, desired: address, ordering: .sequentiallyConsistent)
    guard !exchanged, let earlier = loop(at: original) else {
      watchMainThread(made)
      if !hasLeft { LoadHook.mainLoopIsKnown.call(made) }
      return made
    }
    Unmanaged.passUnretained(made).release()
    return earlier
  }

  /// The main loop if it has been made.
  package static var mainIfMade: RunLoop? { loop(at: mainAddress.load(ordering: .sequentiallyConsistent)) }

  /// The address of the main loop, or zero before it was made.
  ///
  /// The main loop stays for as long as the process.
  private static let mainAddress = Atomic<UInt>(0)

  private static func loop(at address: UInt) -> RunLoop? { unmanaged(at: address)?.takeUnretainedValue() }

  /// In a forked child: gives up the loops of the parent's threads, with everything that is in them.
  static func forgetParentsLoops() {
    crl_thread_slot_set(nil)
    crl_promise_slot_set(nil)
    crl_main_slot_set(nil)
    mainAddress.store(0, ordering: .releasing)
    forgetEndOfMain()
  }

  /// The loop of the calling thread if it has been made.
  package static var currentIfMade: RunLoop? {
    guard let slot = crl_thread_slot_get() else { return nil }
    return loop(in: slot)
  }

  /// The waiter from which the calling thread reads the time: its loop's, if it has a loop.
  static var currentWaiter: any Waiter { currentIfMade?.waiter ?? SystemWaiter.shared }

  package static var callingThreadID: Int32 { crl_thread_id() }

  package static var isMainThread: Bool { callingThreadID == getpid() }

  private static func loop(in slot: UnsafeMutableRawPointer) -> RunLoop {
    // After its loop has ended, a thread that asks in a late destructor gets a loop that has ended, and that is kept
    // nowhere.
    guard slot != endedMark else { return deadLoop() }
    return Unmanaged<RunLoop>.fromOpaque(slot).takeUnretainedValue()
  }

  private static func deadLoop() -> RunLoop {
    let loop = RunLoop(threadID: callingThreadID, waiter: SystemWaiter.shared)
    loop.end()
    return loop
  }

  /// Makes `loop` the calling thread's loop, which ends with the thread.
  @discardableResult
  static func attach(_ loop: RunLoop) -> RunLoop {
    loop.threadNumber.store(callingThreadID, ordering: .relaxed)
    crl_thread_slot_set(Unmanaged.passRetained(loop).toOpaque())
    RunLoopRegistry.shared.insert(loop)
    loop.noteThread()
    // The key's value is the round of destructors, beginning at 1: a null value would call none.
    pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: 1))
    return loop
  }

  /// Ends the calling thread's loop, as the thread's end does.
  package static func detachCurrent() {
    guard let slot = crl_thread_slot_get(), slot != endedMark else { return }
    let loop = Unmanaged<RunLoop>.fromOpaque(slot)
    loop._withUnsafeGuaranteedRef { $0.endWithThread() }
    if crl_main_slot_get() == slot { crl_main_slot_set(nil) }
    RunLoopRegistry.shared.remove(loop.takeUnretainedValue())
    loop._withUnsafeGuaranteedRef { $0.noteEnd() }
    crl_thread_slot_set(endedMark)
    // Nothing is left to do in a later round.
    pthread_setspecific(endKey, nil)
    loop.release()
  }

  /// Ends the calling thread's loop before the thread ends; if the thread asks again, it gets a new one.
  ///
  /// For threads that are lent by other code, which expects them back unchanged.
  package static func giveUpCurrent() {
    detachCurrent()
    crl_thread_slot_set(nil)
    // Other code may have asked for the thread's object meanwhile, whose promise would return the loop that has ended.
    LoopPromise.installed?.forgetLoop()
  }

  /// Makes sure that a thread that has no loop gets none any more.
  static func rejectCurrent() {
    if crl_thread_slot_get() == nil { crl_thread_slot_set(endedMark) }
  }

  /// The value in the slot of a thread whose loop has ended.
  static var endedMark: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  /// Whether the calling thread's loop has ended, so that the thread gets no other.
  package static var callingThreadHasEnded: Bool { crl_thread_slot_get() == endedMark }

  /// The round of thread-specific destructors in which the loop of a thread that the system made ends.
  ///
  /// Destructors of the first round still find the loop; those of the third no longer find Core Foundation's data of
  /// the thread, which the code that the loop calls or releases at its end may use.
  package static let lastRound = 2

  /// The round of destructors in which the calling thread will be called for its loop: the first, as long as it has
  /// none.
  package static var nextRound: Int { max(1, Int(bitPattern: pthread_getspecific(endKey))) }

  static let endKey: pthread_key_t = {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      let round = Int(bitPattern: value)
      if round < lastRound {
        pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: round + 1))
      } else if LoopPromise.installed == nil {
        // A thread that has promised its loop ends the loop itself, in the same round.
        detachCurrent()
      }
    }
    guard answer == 0 else { fatalError("no thread-specific key is left for the end of run loops (error \(answer))") }
    return key
  }()
}
