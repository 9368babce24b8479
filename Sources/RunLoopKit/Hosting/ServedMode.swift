// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// A mode of Core Foundation's main loop in whose runs ours is served.
///
/// Observers tell of the runs. A source that nobody signals, the mark, keeps the mode alive as long as ours has items
/// in it. What stands in the mode while a run goes on is in `RunItems`. A mode is never given up.
final class ServedMode: @unchecked Sendable {
  // Sendable: the items of runs belong to the main thread; of the mark, each part says who may touch it.

  let name: RunLoopCore.RunLoop.Mode
  let coreFoundationName: CFRunLoopMode
  let runLoop: CFRunLoop
  /// Who is notified; it lives as long as the main loop.
  unowned let service: MainThreadService
  /// What of ours stands in the mode while a run goes on.
  private(set) lazy var items = RunItems(in: self)

  private let isMarked = Atomic<Bool>(false)
  /// Changed by whoever is at it; the lock guards who that is.
  private var mark: CFRunLoopSource?
  private let lock = Lock()
  private var isMarking = false
  private var isMarkStale = false
  private var portSetSearch = PortSetSearch()
  private let observing = Lock()
  /// Guarded by the lock before it.
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
  /// Has the service told of each run, before anybody else at its entry and after everybody later.
  ///
  /// Any thread. Whoever comes while another thread is adding the observers waits for it: when this returns, they
  /// stand. Core Foundation calls nobody when an observer is added.
  ///
  /// - Returns: Whether this call has added them.
  func observe() -> Bool {
    observing.withLock {
      guard !isObserved, hasDescriptors else { return false }
      isObserved = true
      addObserver([.entry], order: .min) { mode, _ in mode.service.runBegins(in: mode) }
      addObserver([.beforeSources, .beforeWaiting, .afterWaiting], order: .max) { mode, activity in
        mode.service.runReaches(activity, in: mode)
      }
      addObserver([.exit], order: .max) { mode, _ in mode.service.runEnds(in: mode) }
      return true
    }
  }

  /// Whether Core Foundation can make the mode: it ends the process if it gets no descriptors for it.
  private var hasDescriptors: Bool {
    // Its loop has this mode from the start.
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

  /// Whether Core Foundation's loop has the mode, with our observers in it.
  private var isServed: Bool { observing.withLock { isObserved } }

  /// The epoll set of the mode, in which Core Foundation's loop waits; nil if it cannot be found.
  ///
  /// Used on the loop's thread only.
  var portSet: Int32? { isServed ? portSetSearch.number(of: coreFoundationName, in: runLoop) : nil }

  private func addObserver(
    _ activities: [CFRunLoopActivity], order: CFIndex,
    _ handler: @escaping @Sendable (ServedMode, CFRunLoopActivity) -> Void
  ) {
    let mask = activities.reduce(0) { $0 | $1.rawValue }
    // Core Foundation's loop keeps it, and it keeps the mode, for as long as the process.
    let observer = CFRunLoopObserverCreateWithHandler(nil, mask, true, order) { [self] _, activity in
      handler(self, activity)
    }
    CFRunLoopAddObserver(runLoop, observer, coreFoundationName)
  }

  /// Has our loop served as the next step of the run that goes on.
  ///
  /// A block may run either loop again. In an observer that would be a run of which the same observer is not notified.
  func serveSoon() {
    CFRunLoopPerformBlock(runLoop, coreFoundationName) { [self] in service.serve(self) }
  }
}

// The descriptors.
extension ServedMode {
  /// How many descriptors Core Foundation opens for a loop with its default mode, and one that is left over.
  static let descriptorsOfLoop = 4
  /// How many descriptors Core Foundation needs for a further mode, at most.
  private static let descriptorsOfMode = 3
}

// The mark.
extension ServedMode {
  /// Whether ours keeps the mode alive, as far as Core Foundation knows.
  ///
  /// Any thread.
  var keepsAlive: Bool { isMarked.load(ordering: .acquiring) }

  /// Keeps the mode alive exactly as long as ours has items in it.
  ///
  /// Any thread.
  func updateMark(of loop: RunLoopCore.RunLoop) {
    guard isServed else { return }
    // Whoever comes while another is at it leaves it to that one: Core Foundation is not called under a lock of ours.
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

  /// Whether Core Foundation's mode has a source, a timer or a block beside the mark; called on the loop's thread.
  func hasItemsOfOthers() -> Bool {
    guard keepsAlive else { return hasItems }
    let isFirst = lock.withLock {
      guard !isMarking else { return false }
      isMarking = true
      isMarkStale = true
      return true
    }
    // Another thread is changing the mark: this is not to wait for it.
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

/// A source of Core Foundation's that does nothing.
///
/// - Parameters:
///   - number: Tells it from others in its mode: Core Foundation takes sources of equal contexts for one.
///   - order: Where it stands among the sources of its mode.
func makeEmptySource(_ number: Int, order: CFIndex = .min) -> CFRunLoopSource? {
  var context = CFRunLoopSourceContext()
  context.info = UnsafeMutableRawPointer(bitPattern: number)
  context.perform = { _ in }
  return CFRunLoopSourceCreate(nil, order, &context)
}
