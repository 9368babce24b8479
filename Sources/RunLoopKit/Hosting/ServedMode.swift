// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// A mode of Core Foundation's main loop in whose runs our loop is served.
///
/// Observers report the runs. The mark, a source that is never signalled, keeps the mode alive while our loop has
/// items in it. `RunItems` contains the items that exist only during a run. A mode is never released.
final class ServedMode: @unchecked Sendable {
  // Sendable: `items` and `portSetSearch` are used only on the main thread. `lock` guards `isMarking` and
  // `isMarkStale`, and the thread that has set `isMarking` owns the mark. `observing` guards `isObserved`.

  let name: RunLoopCore.RunLoop.Mode
  let coreFoundationName: CFRunLoopMode
  let runLoop: CFRunLoop
  /// The service to notify, which exists as long as the main loop.
  unowned let service: MainThreadService
  /// The items of our loop in the mode during a run.
  private(set) lazy var items = RunItems(in: self)

  private let isMarked = Atomic<Bool>(false)
  private var mark: CFRunLoopSource?
  private let lock = Lock()
  private var isMarking = false
  private var isMarkStale = false
  private var portSetSearch = PortSetSearch()
  private let observing = Lock()
  private var isObserved = false

  init(_ name: RunLoopCore.RunLoop.Mode, of runLoop: CFRunLoop, for service: MainThreadService) {
    self.name = name
    self.runLoop = runLoop
    self.service = service
    coreFoundationName = name.coreFoundationMode
  }
}

// Runs.
extension ServedMode {
  /// Notifies the service of each run, before all other observers at its entry and after all others later.
  ///
  /// Can be called from any thread. If another thread is adding the observers, this waits for it, so they have been
  /// added when it returns. Core Foundation calls no user code while an observer is added.
  ///
  /// - Returns: Whether this call added the observers.
  func observe() -> Bool {
    observing.withLock {
      guard !isObserved, hasDescriptors else { return false }
      isObserved = true
      addObserver([.entry, .afterWaiting], order: .min) { mode, activity in
        if activity == .entry { mode.service.runBegins(in: mode) }
        RunLoopCore.RunLoop.current.noteHost(activity)
      }
      addObserver([.beforeSources, .beforeWaiting, .afterWaiting], order: .max) { mode, activity in
        mode.service.runReaches(activity, in: mode)
        if activity != .afterWaiting { RunLoopCore.RunLoop.current.noteHost(activity) }
      }
      addObserver([.exit], order: .max) { mode, _ in mode.service.runEnds(in: mode) }
      return true
    }
  }

  /// Whether there are enough descriptors for Core Foundation to create the mode, because it aborts otherwise.
  private var hasDescriptors: Bool {
    // Core Foundation's loop has this mode from the start.
    guard name != .default else { return true }
    do {
      try OwnedDescriptor.requireSpare(ServedMode.descriptorsOfMode)
      return true
    } catch {
      Diagnostic.coreFoundation.report(
        "runs of Core Foundation's main run loop in the mode \(name) do not serve RunLoop.main: \(error); the next item "
          + "that is added tries again")
      return false
    }
  }

  /// Whether Core Foundation's loop has the mode with our observers in it.
  private var isServed: Bool { observing.withLock { isObserved } }

  /// The epoll set of the mode, in which Core Foundation's loop waits, or nil if it cannot be found.
  ///
  /// Used only on the loop's thread.
  var portSet: Int32? { isServed ? portSetSearch.number(of: coreFoundationName, in: runLoop) : nil }

  private func addObserver(
    _ activities: [CFRunLoopActivity], order: CFIndex,
    _ handler: @escaping @Sendable (ServedMode, CFRunLoopActivity) -> Void
  ) {
    let mask = activities.reduce(0) { $0 | $1.rawValue }
    // Core Foundation's loop retains the observer, which retains the mode, for the lifetime of the process.
    let observer = CFRunLoopObserverCreateWithHandler(nil, mask, true, order) { [self] _, activity in
      handler(self, activity)
    }
    CFRunLoopAddObserver(runLoop, observer, coreFoundationName)
  }

  /// Makes our loop be served as the next step of the current run.
  ///
  /// This uses a block because a block may run either loop again. A run started by an observer would not call that
  /// observer.
  func serveSoon() {
    CFRunLoopPerformBlock(runLoop, coreFoundationName) { [self] in service.serve(self) }
  }
}

// Descriptors.
extension ServedMode {
  /// The number of descriptors that Core Foundation opens for a loop with its default mode, plus a spare one.
  static let descriptorsOfLoop = 4
  /// The maximum number of descriptors that Core Foundation needs for another mode.
  private static let descriptorsOfMode = 3
}

// The mark.
extension ServedMode {
  /// Whether our loop keeps the mode alive in Core Foundation.
  ///
  /// Can be read from any thread.
  var keepsAlive: Bool { isMarked.load(ordering: .acquiring) }

  /// Keeps the mode alive exactly as long as our loop has items in it.
  ///
  /// Can be called from any thread.
  func updateMark(of loop: RunLoopCore.RunLoop) {
    guard isServed else { return }
    // Another thread that is updating the mark also makes this update: Core Foundation is not called with a lock held.
    let isFirst = lock.withLock {
      isMarkStale = true
      guard !isMarking else { return false }
      isMarking = true
      return true
    }
    if isFirst { settleMark(of: loop) }
  }

  private func settleMark(of loop: RunLoopCore.RunLoop) {
    while lock.withLock({
      if !isMarkStale { isMarking = false }
      defer { isMarkStale = false }
      return isMarkStale
    }) {
      setMark(loop.itemCount(of: name) > 0 && service.mayMark(name))
    }
  }

  /// Returns whether Core Foundation's mode has items besides the mark.
  ///
  /// Must be called on the loop's thread.
  func hasItemsOfOthers() -> Bool {
    guard keepsAlive else { return hasItems }
    let isFirst = lock.withLock {
      guard !isMarking else { return false }
      isMarking = true
      isMarkStale = true
      return true
    }
    // Another thread is changing the mark, and this must not wait for it.
    guard isFirst else { return true }
    setMark(false)
    defer { settleMark(of: .current) }
    return hasItems
  }

  private var hasItems: Bool {
    rlk_has_items(
      Unmanaged.passUnretained(runLoop).toOpaque(), Unmanaged.passUnretained(coreFoundationName).toOpaque()) != 0
  }

  private func setMark(_ isIn: Bool) {
    guard isMarked.exchange(isIn, ordering: .acquiringAndReleasing) != isIn else { return }
    if mark == nil { mark = makeEmptySource(1) }
    if isIn {
      CFRunLoopAddSource(runLoop, mark, coreFoundationName)
    } else {
      CFRunLoopRemoveSource(runLoop, mark, coreFoundationName)
    }
  }
}

/// Creates a Core Foundation source that does nothing.
///
/// - Parameters:
///   - number: Distinguishes the source from others in its mode, because sources with equal contexts are the same.
///   - order: The order of the source in its mode.
func makeEmptySource(_ number: Int, order: CFIndex = .min) -> CFRunLoopSource? {
  var context = CFRunLoopSourceContext()
  context.info = UnsafeMutableRawPointer(bitPattern: number)
  context.perform = { _ in }
  return CFRunLoopSourceCreate(nil, order, &context)
}
