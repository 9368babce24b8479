import CRunLoopSystem
import Glibc
import RunLoopCore
import Synchronization

// A thread's object hangs on the thread, in a thread-local slot, and ends in a thread-specific destructor.
extension Thread {
  /// The object of the calling thread, made now for a thread that was made by other means.
  ///
  /// O(1), without a system call after the first request. The corresponding Foundation property is `current`.
  ///
  /// In a destructor that runs after the thread's object has ended, it is one that has finished, and is kept nowhere.
  public class var current: Thread {
    guard let slot = crl_object_slot_get() else { return attachForeign() }
    return slot == endedMark ? Thread(endedThread: RunLoop.callingThreadID) : object(in: slot).takeUnretainedValue()
  }

  private static func object(in slot: UnsafeMutableRawPointer) -> Unmanaged<Thread> { .fromOpaque(slot) }

  /// What stands in the slot of a thread whose object has ended.
  private static var endedMark: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  /// The object of the main thread, from any thread.
  public class var main: Thread { mainObject }

  /// The object of the main thread, from any thread.
  public class var mainThread: Thread { mainObject }

  private static let mainObject = Thread(foreign: getpid(), isMain: true, promise: LoopPromise(RunLoop.main))

  private static func attachForeign() -> Thread {
    if RunLoop.isMainThread {
      // The main thread's object outlives everything.
      crl_object_slot_set(Unmanaged.passUnretained(mainObject).toOpaque())
      return mainObject
    }
    let thread = Thread(
      foreign: RunLoop.callingThreadID, isMain: false, promise: LoopPromise(RunLoop.currentIfMade))
    _ = Unmanaged.passRetained(thread)
    attach(thread)
    return thread
  }

  /// Hangs an object on the calling thread, which owns one reference to it from now on.
  static func attach(_ thread: Thread) {
    crl_object_slot_set(Unmanaged.passUnretained(thread).toOpaque())
    thread.promise.install()
    pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: 1))
  }

  /// The round of thread-specific destructors in which the thread's object ends: with its loop, after other destructors.
  private static let lastRound = 3

  private static let endKey: pthread_key_t = {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      let round = Int(bitPattern: value)
      if round < lastRound {
        pthread_setspecific(endKey, UnsafeRawPointer(bitPattern: round + 1))
      } else if let slot = crl_object_slot_get(), slot != endedMark {
        let thread = object(in: slot)
        thread._withUnsafeGuaranteedRef { $0.endOnThread() }
        crl_object_slot_set(endedMark)
        thread.release()
      }
    }
    precondition(answer == 0, "no thread-specific key is left for the end of threads (error \(answer))")
    return key
  }()
}
