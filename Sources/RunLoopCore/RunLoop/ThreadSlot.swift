import CRunLoopSystem
import Glibc
import Synchronization

// A thread's loop hangs on the thread itself, in a thread-local slot. No table is keyed by a thread's id, which the system
// uses again as soon as the thread is gone.
extension RunLoop {
  /// The loop of the calling thread, made at its first request.
  ///
  /// It is the same loop until the thread ends, also in the destructors of thread-specific data. On the main thread it is
  /// ``main``. O(1), without a system call after the first request. The corresponding Core Foundation function is
  /// `CFRunLoopGetCurrent`.
  public static var current: RunLoop {
    if let slot = crl_thread_slot_get() { return loop(in: slot) }
    if isMainThread { return attach(main) }
    if let promised = LoopPromise.installed?.loop { return attach(promised) }
    return attach(RunLoop(threadID: callingThreadID, waiter: SystemWaiter.shared))
  }

  /// The loop of the main thread, from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopGetMain`.
  public static var main: RunLoop {
    if let main = loop(at: mainAddress.load(ordering: .acquiring)) { return main }
    let made = RunLoop(
      threadID: getpid(), waiter: SystemWaiter.shared,
      mainQueueHandle: ForkGeneration.isForkedChild ? nil : MainQueue.handle)
    LoadHook.mainLoopIsMade.call(made)
    // Of several threads that ask first, one makes the loop that stays.
    let address = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = mainAddress.compareExchange(
      expected: 0, desired: address, ordering: .acquiringAndReleasing)
    guard !exchanged, let earlier = loop(at: original) else { return made }
    Unmanaged.passUnretained(made).release()
    return earlier
  }

  /// The main loop if it has been made.
  package static var mainIfMade: RunLoop? { loop(at: mainAddress.load(ordering: .acquiring)) }

  /// The main loop, or zero before it was made.
  ///
  /// It stays for as long as the process.
  private static let mainAddress = Atomic<UInt>(0)

  private static func loop(at address: UInt) -> RunLoop? {
    guard let pointer = UnsafeRawPointer(bitPattern: address) else { return nil }
    return Unmanaged<RunLoop>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// In a forked child: gives up the loops that the parent's threads had, with all that is in them.
  static func forgetParentsLoops() {
    crl_thread_slot_set(nil)
    mainAddress.store(0, ordering: .releasing)
  }

  /// The loop of the calling thread if it has been made.
  package static var currentIfMade: RunLoop? {
    guard let slot = crl_thread_slot_get() else { return nil }
    return loop(in: slot)
  }

  /// How the calling thread tells the time: as its loop does, if it has one.
  static var currentWaiter: any Waiter { currentIfMade?.waiter ?? SystemWaiter.shared }

  package static var callingThreadID: Int32 { crl_thread_id() }

  package static var isMainThread: Bool { callingThreadID == getpid() }

  private static func loop(in slot: UnsafeMutableRawPointer) -> RunLoop {
    // After its loop has ended, a thread that asks in a late destructor is given one that is dead, and kept nowhere.
    guard slot != endedMark else { return deadLoop() }
    return Unmanaged<RunLoop>.fromOpaque(slot).takeUnretainedValue()
  }

  private static func deadLoop() -> RunLoop {
    let loop = RunLoop(threadID: callingThreadID, waiter: SystemWaiter.shared)
    loop.end()
    return loop
  }

  /// Makes `loop` the calling thread's and sees to it that it ends with the thread.
  @discardableResult
  static func attach(_ loop: RunLoop) -> RunLoop {
    loop.threadNumber.store(callingThreadID, ordering: .relaxed)
    crl_thread_slot_set(Unmanaged.passRetained(loop).toOpaque())
    RunLoopRegistry.shared.insert(loop)
    // The key's value is the round of destructors, beginning at 1: a null value would call none.
    pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: 1))
    return loop
  }

  /// Ends the calling thread's loop, as the thread's end does.
  package static func detachCurrent() {
    guard let slot = crl_thread_slot_get(), slot != endedMark else { return }
    let loop = Unmanaged<RunLoop>.fromOpaque(slot)
    guard !loop._withUnsafeGuaranteedRef({ $0.sabotage.contains(.loopsOutliveThreads) }) else { return }
    loop._withUnsafeGuaranteedRef { $0.end() }
    RunLoopRegistry.shared.remove(loop.takeUnretainedValue())
    crl_thread_slot_set(endedMark)
    // A loop that was made in the last round has nothing to do in one more.
    pthread_setspecific(endKey, nil)
    loop.release()
  }

  /// Ends the calling thread's loop before the thread ends; asked again, the thread gets a new one.
  ///
  /// For threads that are lent by others, who expect them back as they were.
  package static func giveUpCurrent() {
    detachCurrent()
    crl_thread_slot_set(nil)
  }

  /// Sees to it that a thread that has no loop is given none any more.
  static func refuseCurrent() {
    if crl_thread_slot_get() == nil { crl_thread_slot_set(endedMark) }
  }

  /// What stands in the slot of a thread whose loop has ended.
  static var endedMark: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  /// The round of thread-specific destructors in which the loop ends, so that other destructors still find it.
  private static let lastRound = 3

  private static let endKey: pthread_key_t = {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      let round = Int(bitPattern: value)
      if round < lastRound {
        pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: round + 1))
      } else if LoopPromise.installed == nil {
        // A thread that has promised its loop ends it itself, as its last step, and in the same round.
        detachCurrent()
      }
    }
    precondition(answer == 0, "no thread-specific key is left for the end of run loops (error \(answer))")
    return key
  }()
}
