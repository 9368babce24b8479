// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// A line-by-line translation of the articles' resident thread: Yongzhen's `MJPermenantThread`, and in the variant
/// with a flag also Qiu's thread.
///
/// It reproduces the original faults, but never hangs forever: a wait ends when no thread is left to end it, and the
/// bench can end the thread.
final class PermanentThread: Sendable {
  /// The articles' ways of keeping the thread alive.
  enum Variant: Sendable, CaseIterable {
    /// A loop around `runMode:beforeDate:` that checks a flag through a weak reference.
    case flag
    /// `CFRunLoopRunInMode` for 1.0e10 seconds.
    case coreFoundation
  }

  /// The points at which the bench may hold the thread, so that others run first.
  enum Moment: Sendable {
    /// After adding the source, and before running the loop.
    case beforeRun
    /// After `__stop` has stopped the run, and before it returns.
    case stopping
  }

  private let parts: Parts
  /// The state of the thread.
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

  /// `executeTask:`, which returns nothing.
  func execute(_ task: @escaping @Sendable () -> Void) { parts.innerThread?.performSelector(task) }

  /// `stop`, which waits until the thread has stopped its run; returns false if it would wait forever.
  ///
  /// - Parameter posted: Called when the stop is on its way and the wait begins.
  @discardableResult
  func stop(posted: @escaping () -> Void = {}) -> Bool { parts.stop(posted: posted) }

  /// `innerThread`, which is nil after the stop.
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
  /// Performs work on the thread like `performSelector:onThread:withObject:waitUntilDone:NO`: the caller is not
  /// notified if it never runs.
  func performSelector(_ work: @escaping @Sendable () -> Void) { _ = try? perform(work) }

  /// Performs work on the thread and waits for it like `performSelector:onThread:withObject:waitUntilDone:YES`, or
  /// immediately on the thread itself.
  ///
  /// A wait that would never end, because the thread's body has already returned, is abandoned.
  ///
  /// - Parameter posted: Called when the wait begins.
  /// - Returns: Whether the work has run.
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
