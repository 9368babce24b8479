// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import Synchronization

// The object of the main thread is made when it is first asked for, and stays for as long as the process.
extension Thread {
  /// The object of the main thread, from any thread.
  ///
  /// In a program with an `async` main the main thread leaves early, at the first suspension. Its object has then
  /// finished, and work for it throws ``ThreadError/mainThreadHasLeft``.
  public class var main: Thread { RunLoop.hasMainStandIn ? current : mainObject }

  /// The object of the main thread, from any thread.
  ///
  /// This is ``main``, in Foundation's other spelling.
  public class var mainThread: Thread { main }

  // Relaxed where these are forgotten: that is in a forked child, which has one thread.
  private static let mainAddress = Atomic<UInt>(0)
  private static let mainEndBegan = Atomic<Bool>(false)

  private static var mainIfMade: Thread? {
    UnsafeMutableRawPointer(bitPattern: mainAddress.load(ordering: .sequentiallyConsistent))
      .map { object(in: $0).takeUnretainedValue() }
  }

  static var mainObject: Thread {
    if let main = mainIfMade { return main }
    watchForks()
    let made = Thread(foreign: getpid(), isMain: true, promise: LoopPromise(RunLoop.processMain))
    // If several threads ask first, one of them makes the object that stays.
    let address = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = mainAddress.compareExchange(
      expected: 0, desired: address, ordering: .sequentiallyConsistent)
    guard !exchanged, let earlier = UnsafeMutableRawPointer(bitPattern: original) else {
      _ = crl_hook_exchange(CRL_HOOK_MAIN_OBJECT_ENDS) { _ in Thread.endMain(onThread: true) }
      // The thread may have left before it could know of this object.
      if RunLoop.mainThreadHasLeft { endMain(onThread: false) }
      return made
    }
    Unmanaged.passUnretained(made).release()
    return object(in: earlier).takeUnretainedValue()
  }

  /// Ends the object, once, as the main thread's step before it leaves or in place of that.
  private static func endMain(onThread: Bool) {
    guard let main = mainIfMade, !mainEndBegan.exchange(true, ordering: .acquiringAndReleasing) else { return }
    main.endMain(onThread: onThread)
    if onThread { crl_object_slot_set(endedMark) }
  }

  /// In a forked child the only thread is the main one, and has an object of its own; what is kept for a whole process
  /// is the child's own too.
  static func watchForks() { _ = forkHandler }

  private static let forkHandler: Void = {
    // The core's handler runs before this one.
    _ = ForkGeneration.current
    // What the child's handler uses is made by now: a thread that was just making it would not exist in the child.
    _ = endKey
    ResidentThread.prepareForForks()
    let answer = pthread_atfork(
      nil, nil,
      {
        mainAddress.store(0, ordering: .relaxed)
        mainEndBegan.store(false, ordering: .relaxed)
        Thread.forgetParentsObject()
        ResidentThread.forgetParentsThreads()
      })
    guard answer == 0 else { fatalError("no handler for forks can be installed (error \(answer))") }
  }()
}
