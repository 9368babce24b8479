// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import Synchronization

// The object of the main thread is created on first use and lives as long as the process.
extension Thread {
  /// The object of the main thread.
  ///
  /// Can be used from any thread.
  ///
  /// In a program with an `async` main, the main thread exits early, at the first suspension. Its object has then
  /// finished, and posting work to it throws ``ThreadError/mainThreadHasLeft``.
  public class var main: Thread { RunLoop.hasMainStandIn ? current : mainObject }

  /// The object of the main thread.
  ///
  /// Can be used from any thread.
  ///
  /// This is ``main`` under Foundation's other name.
  public class var mainThread: Thread { main }

  // These are reset with relaxed ordering, which happens only in a forked child, where there is a single thread.
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
    // If several threads get here first, only one of their objects is kept.
    let address = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = mainAddress.compareExchange(
      expected: 0, desired: address, ordering: .sequentiallyConsistent)
    guard !exchanged, let earlier = UnsafeMutableRawPointer(bitPattern: original) else {
      _ = crl_hook_exchange(CRL_HOOK_MAIN_OBJECT_ENDS) { _ in Thread.endMain(onThread: true) }
      // The thread may have exited before this object was registered.
      if RunLoop.mainThreadHasLeft { endMain(onThread: false) }
      return made
    }
    Unmanaged.passUnretained(made).release()
    return object(in: earlier).takeUnretainedValue()
  }

  /// Ends the main thread's object once, either as a step of the exiting main thread or later on its behalf.
  private static func endMain(onThread: Bool) {
    guard let main = mainIfMade, !mainEndBegan.exchange(true, ordering: .acquiringAndReleasing) else { return }
    main.endMain(onThread: onThread)
    if onThread { crl_object_slot_set(endedMark) }
  }

  /// Installs the fork handler, which resets the per-process state and the thread's object in a forked child.
  static func watchForks() { _ = forkHandler }

  private static let forkHandler: Void = {
    // Ensures that the core's handler runs before this one.
    _ = ForkGeneration.current
    // Created now, because a thread that was just creating them at the fork would not exist in the child.
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
