// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// Makes our main loop and Core Foundation's serve each other automatically.
///
/// Our runs wait in Core Foundation's loop: `findHost` sets a host as soon as that loop is used. Core Foundation's
/// runs serve our loop, by observers in each mode that our loop has; see `MainThreadService+Runs.swift`.
///
/// A run of Core Foundation's loop that C code starts sends no notification, so our observers must be in that loop
/// before it runs. Therefore that loop is created together with ours. If we created it and it is empty, it costs three
/// descriptors, and our loop waits by itself and only watches it.
final class MainThreadService: MainLoopService, @unchecked Sendable {
  // Sendable: the lock guards the table of modes. `runs` and the variables after it are used only on the main thread.

  private let lock = Lock()
  /// Held while Core Foundation's main loop is requested, and never acquired while a lock of Core Foundation is held.
  private let finding = Lock()
  private var modes: [RunLoopCore.RunLoop.Mode: ServedMode] = [:]
  private let isOff = Atomic<Bool>(false)
  /// The address of Core Foundation's main loop once it has been found; the loop exists as long as the process.
  private let address = Atomic<UInt>(0)
  private let isAttached = Atomic<Bool>(false)
  /// Whether other code has created that loop, or has requested Foundation's object for it.
  private let isUsed = Atomic<Bool>(false)
  /// Whether our loop has waited in that one, so that the default mode also gets a mark.
  private let hasHosted = Atomic<Bool>(false)
  // Relaxed: exactly one thread is the first, regardless of the order of other operations.
  private let hasReportedLack = Atomic<Bool>(false)
  /// The active runs of Core Foundation's loop, as far as known, the outermost first.
  var runs: [HostRun] = []
  /// The number of times our loop was served since the main dispatch queue was last checked for work in between.
  var servicesSinceQueue = 0
  /// Whether a turn is ending, during which runs started by our observers are not served.
  var isEndingTurn = false
  weak var host: CoreFoundationHost?
  /// The sources that serve Core Foundation's modes while our loop is a guest of another.
  var looks: [RunLoopCore.RunLoop.Mode: Look] = [:]
  /// A source that is never signalled, and keeps a mode from being empty during such a look.
  private(set) lazy var lookKeeper: CFRunLoopSource? = {
    var context = CFRunLoopSourceContext()
    context.perform = { _ in }
    return CFRunLoopSourceCreate(nil, 0, &context)
  }()
  /// The offset of the per-run data in Core Foundation's loop, if it has been found.
  private(set) lazy var runDataOffset: Int32? = runLoop.flatMap { runLoop in
    let offset = rlk_find_run_data(Unmanaged.passUnretained(runLoop).toOpaque())
    return offset < 0 ? nil : offset
  }

  var isOn: Bool { !isOff.load(ordering: .acquiring) }

  func turn(on: Bool) { isOff.store(!on, ordering: .releasing) }

  /// Core Foundation's main loop, if it has been found.
  ///
  /// Can be read from any thread.
  var runLoop: CFRunLoop? {
    UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)).map {
      Unmanaged<CFRunLoop>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Records that Core Foundation's main loop is used.
  ///
  /// Can be called from any thread.
  func noteUse(of runLoop: CFRunLoop) {
    isUsed.store(true, ordering: .releasing)
    address.store(UInt(bitPattern: Unmanaged.passUnretained(runLoop).toOpaque()), ordering: .releasing)
  }

  /// Finds Core Foundation's main loop, or creates it if the process has the descriptors for it.
  ///
  /// Can be called from any thread. Once the loop has been found, this costs one atomic load.
  func findLoop(making: Bool) {
    guard address.load(ordering: .acquiring) == 0 else { return }
    // Without this lock, two threads would each mistake the other's loop for one that is used.
    finding.withLock { findLoopUnderLock(making: making) }
  }

  private func findLoopUnderLock(making: Bool) {
    guard address.load(ordering: .acquiring) == 0 else { return }
    if let made = rlk_main_loop_if_made() {
      noteUse(of: Unmanaged<CFRunLoop>.fromOpaque(made).takeUnretainedValue())
    } else if making {
      makeLoop()
    }
  }

  private func makeLoop() {
    // Core Foundation cannot be used on a thread whose thread-specific data has been destroyed.
    guard !RunLoopCore.RunLoop.callingThreadHasEnded, !RunLoopCore.RunLoop.mainThreadHasLeft else { return }
    do {
      // Core Foundation aborts if it cannot get descriptors for its loop.
      try OwnedDescriptor.requireSpare(ServedMode.descriptorsOfLoop)
    } catch {
      guard !hasReportedLack.exchange(true, ordering: .relaxed) else { return }
      Diagnostic.coreFoundation.report(
        "Core Foundation's main run loop cannot be made, so that its runs do not serve RunLoop.main: \(error); the next "
          + "item that is added tries again")
      return
    }
    let runLoop: CFRunLoop = CFRunLoopGetMain()
    address.store(UInt(bitPattern: Unmanaged.passUnretained(runLoop).toOpaque()), ordering: .releasing)
  }
}

// Called by our loop.
extension MainThreadService {
  func findHost(for loop: RunLoopCore.RunLoop, in mode: RunLoopCore.RunLoop.Mode) {
    guard isOn else { return }
    // A loop that is created by a call of Core Foundation sends no notification.
    findLoop(making: false)
    guard let runLoop, !loop.isExplicitGuest else { return }
    attach(to: runLoop, loop)
    guard isUsed.load(ordering: .acquiring) || hasItems(in: mode, of: runLoop) else { return }
    setHost(for: loop, in: runLoop)
  }

  /// Makes our loop wait in Core Foundation's loop.
  func setHost(for loop: RunLoopCore.RunLoop, in runLoop: CFRunLoop) {
    do {
      try loop.setHost(isAutomatic: true) { CoreFoundationHost($0, service: self) }
    } catch {
      Diagnostic.coreFoundation.report(
        "Core Foundation's main run loop and RunLoop.main do not serve each other: \(error)")
      return
    }
    noteHosting(of: loop, in: runLoop)
  }

  /// Lets the default mode also have a mark for our items, without which a run of Core Foundation's loop that is
  /// nested in work of the main dispatch queue would find the mode empty.
  func noteHosting(of loop: RunLoopCore.RunLoop, in runLoop: CFRunLoop) {
    guard !hasHosted.exchange(true, ordering: .sequentiallyConsistent) else { return }
    serve(.default, of: runLoop).updateMark(of: loop)
  }

  /// Whether a mode may have a mark.
  ///
  /// The default mode has none while our loop waits by itself, because our loop checks before each wait whether that
  /// mode has items of others. The main dispatch queue keeps a run alive there.
  func mayMark(_ name: RunLoopCore.RunLoop.Mode) -> Bool {
    name != .default || hasHosted.load(ordering: .sequentiallyConsistent)
  }

  /// Returns whether Core Foundation's main loop has items other than a mark in a mode.
  ///
  /// Must be called on the main thread.
  private func hasItems(in name: RunLoopCore.RunLoop.Mode, of runLoop: CFRunLoop) -> Bool {
    if let mode = mode(name) { return mode.hasItemsOfOthers() }
    let other = name.coreFoundationMode
    return withExtendedLifetime(other) {
      rlk_has_items(Unmanaged.passUnretained(runLoop).toOpaque(), Unmanaged.passUnretained(other).toOpaque()) != 0
    }
  }

  func descriptorOfOtherLoop(in name: RunLoopCore.RunLoop.Mode) -> Int32? {
    guard isOn, isAttached.load(ordering: .acquiring) else { return nil }
    return mode(name)?.portSet
  }

  func itemCame(to mode: RunLoopCore.RunLoop.Mode, of loop: RunLoopCore.RunLoop) {
    guard isOn else { return }
    findLoop(making: true)
    guard let runLoop else { return }
    attach(to: runLoop, loop)
    for name in mode == .common ? loop.commonModes : [mode] {
      let mode = serve(name, of: runLoop)
      if !mode.keepsAlive, mayMark(name) { mode.updateMark(of: loop) }
    }
  }

  func modeBecameCommon(_ name: RunLoopCore.RunLoop.Mode, of loop: RunLoopCore.RunLoop) {
    itemCame(to: name, of: loop)
    guard isOn, let runLoop else { return }
    CFRunLoopAddCommonMode(runLoop, name.coreFoundationMode)
  }

  func stopInnermost(of other: AnyObject) -> Bool {
    guard isOn, let loop = RunLoopCore.RunLoop.mainIfMade else { return false }
    // The caller may just have created the loop, by requesting the loop to stop.
    findLoop(making: false)
    guard let runLoop, runLoop === other else { return false }
    guard loop.isInnermostItself else { return false }
    loop.stop()
    return true
  }

  /// Starts serving our loop in the runs of Core Foundation's, unless it has already been started.
  ///
  /// Can be called from any thread.
  func attach(to runLoop: CFRunLoop, _ loop: RunLoopCore.RunLoop) {
    guard !isAttached.load(ordering: .acquiring) else { return }
    findLoop(making: false)
    // The flag is set first. The thread that adds an item from now on sees it, and an item that was added before is in
    // a mode that is served here.
    guard !isAttached.exchange(true, ordering: .sequentiallyConsistent) else { return }
    for name in loop.modes {
      serve(name, of: runLoop).updateMark(of: loop)
    }
    // The loop may be sleeping by itself.
    if RunLoopCore.RunLoop.currentIfMade !== loop { loop.wakeUp() }
  }

  /// Returns the served mode of a name, which is created if necessary.
  ///
  /// Its observers have been added when this returns.
  @discardableResult
  func serve(_ name: RunLoopCore.RunLoop.Mode, of runLoop: CFRunLoop) -> ServedMode {
    let mode = lock.withLock { () -> ServedMode in
      let mode = modes[name] ?? ServedMode(name, of: runLoop, for: self)
      modes[name] = mode
      return mode
    }
    // A sleeping run of the mode must call the observers before the next event for our loop.
    if mode.observe(), !RunLoopCore.RunLoop.isMainThread { CFRunLoopWakeUp(runLoop) }
    return mode
  }

  /// Returns the served mode of a name, if there is one.
  ///
  /// Can be called from any thread.
  func mode(_ name: RunLoopCore.RunLoop.Mode) -> ServedMode? { lock.withLock { modes[name] } }
}
