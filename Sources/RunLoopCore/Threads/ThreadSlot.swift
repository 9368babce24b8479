// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import Synchronization

// A thread's loop is stored in a thread-local slot. No table is keyed by thread id, because the system reuses an id as
// soon as its thread has ended.
extension RunLoop {
  /// The calling thread's loop, which is created on first access.
  ///
  /// The loop stays the same until the thread ends. On a thread created by the system, the loop still exists in the
  /// first round of destructors of thread-specific data and ends in the second. A destructor that accesses it later
  /// gets a loop that has ended. A `Thread` of this package ends its loop before any destructor runs. On the main
  /// thread, this is ``main``. The corresponding Core Foundation function is `CFRunLoopGetCurrent`.
  ///
  /// - Complexity: O(1); no system call is made after the first access.
  public static var current: RunLoop {
    if let slot = crl_thread_slot_get() { return loop(in: slot) }
    if isMainThread { return attach(processMain) }
    if let promised = LoopPromise.installed?.loop { return attach(promised) }
    return attach(RunLoop(threadID: callingThreadID, waiter: SystemWaiter.shared))
  }

  /// The main thread's loop, which can be accessed from any thread.
  ///
  /// In a program with an `async` main, the main thread exits early, at the first suspension. Its loop has then ended:
  /// it rejects everything, and calls that can throw throw ``RunLoopError/mainThreadHasLeft``.
  ///
  /// In a test with `VirtualTime.asMain` of RunLoopTesting, this is the test's own loop for code on the test's thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopGetMain`.
  public static var main: RunLoop {
    // The check costs only four instructions: the slot's address, its value, a test and a branch.
    if let standIn = crl_main_slot_get() { return Unmanaged<RunLoop>.fromOpaque(standIn).takeUnretainedValue() }
    return processMain
  }

  /// The loop of the process's main thread, even if another loop replaces it on the calling thread (thread-safe).
  package static var processMain: RunLoop {
    if let main = loop(at: mainAddress.load(ordering: .acquiring)) { return main }
    let hasLeft = mainThreadHasLeft
    let made = RunLoop(
      threadID: getpid(), waiter: SystemWaiter.shared,
      mainQueueHandle: ForkGeneration.isForkedChild || hasLeft ? nil : MainQueue.madeHandle)
    if !hasLeft { LoadHook.mainLoopIsMade.call(made) }
    // If several threads access the main loop first, only one thread's loop is kept. Until that is decided, nothing
    // else may refer to a new loop, because the others are released.
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

  /// The main loop, if it has been created.
  package static var mainIfMade: RunLoop? { loop(at: mainAddress.load(ordering: .sequentiallyConsistent)) }

  /// The address of the main loop, or zero before it was created.
  ///
  /// The main loop exists as long as the process.
  private static let mainAddress = Atomic<UInt>(0)

  private static func loop(at address: UInt) -> RunLoop? { unmanaged(at: address)?.takeUnretainedValue() }

  /// Abandons the loops of the parent's threads and their contents, in a forked child.
  static func forgetParentsLoops() {
    crl_thread_slot_set(nil)
    crl_promise_slot_set(nil)
    crl_main_slot_set(nil)
    mainAddress.store(0, ordering: .releasing)
    forgetEndOfMain()
  }

  /// The calling thread's loop, if it has been created.
  package static var currentIfMade: RunLoop? {
    guard let slot = crl_thread_slot_get() else { return nil }
    return loop(in: slot)
  }

  /// The source of time for the calling thread: its loop's waiter, if it has a loop.
  static var currentWaiter: any Waiter { currentIfMade?.waiter ?? SystemWaiter.shared }

  package static var callingThreadID: Int32 { crl_thread_id() }

  package static var isMainThread: Bool { callingThreadID == getpid() }

  private static func loop(in slot: UnsafeMutableRawPointer) -> RunLoop {
    // A late destructor that accesses the loop after its end gets a loop that has ended, which is not stored anywhere.
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
    // The key's value is the round of destructors, starting at 1 because no destructor is called for a null value.
    pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: 1))
    return loop
  }

  /// Ends the calling thread's loop, as at the end of the thread.
  package static func detachCurrent() {
    guard let slot = crl_thread_slot_get(), slot != endedMark else { return }
    let loop = Unmanaged<RunLoop>.fromOpaque(slot)
    loop._withUnsafeGuaranteedRef { $0.endWithThread() }
    if crl_main_slot_get() == slot { crl_main_slot_set(nil) }
    RunLoopRegistry.shared.remove(loop.takeUnretainedValue())
    loop._withUnsafeGuaranteedRef { $0.noteEnd() }
    crl_thread_slot_set(endedMark)
    // No later round has anything to do.
    pthread_setspecific(endKey, nil)
    for _ in 0..<loop._withUnsafeGuaranteedRef({ $0.spareReferences }) { loop.release() }
    loop.release()
  }

  /// Ends the calling thread's loop while the thread continues, so that the next access creates a new loop.
  ///
  /// For threads that are borrowed from other code, which expects them to be returned unchanged.
  package static func giveUpCurrent() {
    detachCurrent()
    crl_thread_slot_set(nil)
    // Other code may have accessed the thread's object meanwhile, whose promise would return the loop that has ended.
    LoopPromise.installed?.forgetLoop()
  }

  /// Ensures that a thread without a loop never gets one.
  static func rejectCurrent() {
    if crl_thread_slot_get() == nil { crl_thread_slot_set(endedMark) }
  }

  /// The slot's value for a thread whose loop has ended.
  static var endedMark: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  /// Whether the calling thread's loop has ended, so that the thread gets no other.
  package static var callingThreadHasEnded: Bool { crl_thread_slot_get() == endedMark }

  /// The round of thread-specific destructors in which the loop of a system-created thread ends.
  ///
  /// Destructors of the first round can still access the loop. The third round would be too late, because Core
  /// Foundation's thread data, which code called or released at the loop's end may use, no longer exists then.
  package static let lastRound = 2

  /// The next destructor round that the calling thread runs for its loop; it is the first if the thread has no loop.
  package static var nextRound: Int { max(1, Int(bitPattern: pthread_getspecific(endKey))) }

  static let endKey: pthread_key_t = {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      let round = Int(bitPattern: value)
      if round < lastRound {
        pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: round + 1))
      } else if LoopPromise.installed == nil {
        // A thread with a promise ends its loop itself, in the same round.
        detachCurrent()
      }
    }
    guard answer == 0 else { fatalError("no thread-specific key is left for the end of run loops (error \(answer))") }
    return key
  }()
}
