// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// The resident thread of the articles, line by line: `MJPermenantThread` of Yongzhen, and in the variant with a flag
/// also the thread of Qiu.
///
/// It has the faults that it has there. Nothing of it hangs forever: a wait ends when nobody is left who could end it,
/// and the bench can end the thread.
final class PermanentThread: Sendable {
  /// How the articles keep the thread.
  enum Variant: Sendable, CaseIterable {
    /// A loop around `runMode:beforeDate:` that looks at a flag, through a weak reference.
    case flag
    /// `CFRunLoopRunInMode` for 1.0e10 seconds.
    case coreFoundation
  }

  /// Where the bench may hold the thread, to let others come first.
  enum Moment: Sendable {
    /// The source was added, and the loop does not run yet.
    case beforeRun
    /// `__stop` has stopped the run, and has not returned yet.
    case stopping
  }

  private let parts: Parts
  /// What becomes of the thread.
  let watch: Watch

  init(
    _ variant: Variant, on bench: Bench, reached: @escaping @Sendable (Moment) -> Void = { _ in }
  ) {
    let weakSelf = Weak<PermanentThread>()
    let parts = Parts(reached)
    let thread = WatchedThread(on: bench, name: "innerThread") { watch in
      watch.events.write("begin")
      watch.loop.add(watch.source(), forMode: .default)
      reached(.beforeRun)
      switch variant {
      case .flag:
        while !watch.isCut, weakSelf.object?.parts.isStopped == false {
          watch.loop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true)
        }
      case .coreFoundation:
        watch.loop.run(mode: .default, for: 1.0e10)
      }
      if !watch.isCut { watch.events.write("end") }
    }
    self.parts = parts
    watch = thread.watch
    parts.innerThread = thread
    weakSelf.object = self
    thread.start()
  }

  deinit {
    _ = parts.stop()
  }

  /// `executeTask:`, which answers nothing.
  func execute(_ task: @escaping @Sendable () -> Void) { parts.innerThread?.performSelector(task) }

  /// `stop`, which waits until the thread has stopped its run; false if it would wait forever.
  ///
  /// - Parameter posted: Called when the stop is on its way and the wait begins.
  @discardableResult
  func stop(posted: @escaping () -> Void = {}) -> Bool { parts.stop(posted: posted) }

  /// `innerThread`, which is nil once it was stopped.
  var innerThread: WatchedThread? { parts.innerThread }
}

/// The instance variables, which `dealloc` still uses.
private final class Parts: Sendable {
  private let state = Mutex<(isStopped: Bool, innerThread: WatchedThread?)>((false, nil))
  private let reached: @Sendable (PermanentThread.Moment) -> Void

  init(_ reached: @escaping @Sendable (PermanentThread.Moment) -> Void) {
    self.reached = reached
  }

  var isStopped: Bool { state.withLock { $0.isStopped } }

  var innerThread: WatchedThread? {
    get { state.withLock { $0.innerThread } }
    set { state.withLock { $0.innerThread = newValue } }
  }

  func stop(posted: @escaping () -> Void = {}) -> Bool {
    guard let innerThread else { return true }
    return innerThread.performSelectorAndWait(posted: posted) { [self] in
      state.withLock { $0.isStopped = true }
      RunLoop.current.stop()
      reached(.stopping)
      self.innerThread = nil
    }
  }
}

extension WatchedThread {
  /// Performs something on the thread, as `performSelector:onThread:withObject:waitUntilDone:NO` does: nobody is
  /// notified if it never runs.
  func performSelector(_ work: @escaping @Sendable () -> Void) { _ = try? perform(work) }

  /// Performs something on the thread and waits until it has run, as
  /// `performSelector:onThread:withObject:waitUntilDone:YES` does; on the thread itself, at once.
  ///
  /// A wait that would not end, as the thread's body has returned before, is given up.
  ///
  /// - Parameter posted: Called when the wait begins.
  /// - Returns: Whether it has run.
  @discardableResult
  func performSelectorAndWait(posted: () -> Void = {}, _ work: @escaping @Sendable () -> Void) -> Bool {
    if Thread.current === self {
      work()
      return true
    }
    let isDone = watch.bench.flag()
    performSelector {
      work()
      isDone.set()
    }
    posted()
    watch.bench.meeting.wait { isDone.isSet || watch.hasReturned }
    return isDone.isSet
  }
}
