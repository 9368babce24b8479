// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

/// Lets our main loop and Core Foundation's serve each other, without a call.
///
/// Our runs wait in Core Foundation's loop: its `findHost` sets a host as soon as that loop is used. Core Foundation's
/// runs serve ours, by observers in each mode that ours has; see `MainThreadService+Runs.swift`.
///
/// A run of Core Foundation's that C code begins notifies no one. So that loop has to have our observers before it
/// runs, and it is made when ours is. Made by us and empty, it costs three descriptors: ours waits by itself, and only
/// watches it.
final class MainThreadService: MainLoopService, @unchecked Sendable {
  // Sendable: the lock guards the table of modes; `runs` and what comes after that belong to the main thread.

  private let lock = Lock()
  /// Held while Core Foundation is asked for its main loop; never taken under a lock of Core Foundation's.
  private let finding = Lock()
  private var modes: [RunLoopCore.RunLoop.Mode: ServedMode] = [:]
  private let isOff = Atomic<Bool>(false)
  /// The address of Core Foundation's main loop, which lives as long as the process, once it has been found.
  private let address = Atomic<UInt>(0)
  private let isAttached = Atomic<Bool>(false)
  /// Whether code other than this has made that loop, or has asked for Foundation's object for it.
  private let isUsed = Atomic<Bool>(false)
  /// Whether our loop has waited in that one, so that a mark stands in the default mode too.
  private let hasHosted = Atomic<Bool>(false)
  // Relaxed: one thread is the first, whatever else is ordered.
  private let hasReportedLack = Atomic<Bool>(false)
  /// The runs of Core Foundation's loop that are known to be active, the outermost first.
  var runs: [HostRun] = []
  /// How many services of ours there have been since the main dispatch queue was last asked for work between them.
  var servicesSinceQueue = 0
  /// What our observers of a run's end call is no part of the run, and not served.
  var isEndingTurn = false
  weak var host: CoreFoundationHost?
  /// Where our loop is somebody else's guest: what serves Core Foundation's modes, and for how many guests.
  var looks: [RunLoopCore.RunLoop.Mode: (source: RunLoopCore.RunLoop.DescriptorSource, guestCount: Int)] = [:]
  /// Keeps a mode from being empty during such a look; nobody signals it.
  private(set) lazy var lookKeeper: CFRunLoopSource? = {
    var context = CFRunLoopSourceContext()
    context.perform = { _ in }
    return CFRunLoopSourceCreate(nil, 0, &context)
  }()
  /// Where Core Foundation's loop keeps what it notes for a run, if that has been found.
  private(set) lazy var runDataOffset: Int32? = runLoop.flatMap { runLoop in
    let offset = rlk_find_run_data(Unmanaged.passUnretained(runLoop).toOpaque())
    return offset < 0 ? nil : offset
  }

  var isOn: Bool { !isOff.load(ordering: .acquiring) }

  func turn(on: Bool) { isOff.store(!on, ordering: .releasing) }

  /// Core Foundation's main loop, if it has been found; can be used from any thread.
  var runLoop: CFRunLoop? {
    UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)).map {
      Unmanaged<CFRunLoop>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Notes that Core Foundation's main loop is used; can be called from any thread.
  func noteUse(of runLoop: CFRunLoop) {
    isUsed.store(true, ordering: .releasing)
    address.store(UInt(bitPattern: Unmanaged.passUnretained(runLoop).toOpaque()), ordering: .releasing)
  }

  /// Looks for Core Foundation's main loop, and makes it if it has not been made and the process has descriptors for
  /// it.
  ///
  /// Can be called from any thread. Once the loop has been found it costs one load.
  func findLoop(making: Bool) {
    guard address.load(ordering: .acquiring) == 0 else { return }
    // Two threads would each take the other's loop for one that is used.
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
    // After the end of a thread's data Core Foundation cannot be used there.
    guard !RunLoopCore.RunLoop.callingThreadHasEnded, !RunLoopCore.RunLoop.mainThreadHasLeft else { return }
    do {
      // Core Foundation ends the process if it gets no descriptors for its loop.
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

// What our loop tells.
extension MainThreadService {
  func findHost(for loop: RunLoopCore.RunLoop, in mode: RunLoopCore.RunLoop.Mode) {
    guard isOn else { return }
    // A loop that is made by Core Foundation's own calls does not notify us, whenever that is.
    findLoop(making: false)
    guard let runLoop, !loop.hasExplicitGuest else { return }
    attach(to: runLoop, loop)
    guard isUsed.load(ordering: .acquiring) || hasItems(in: mode, of: runLoop) else { return }
    setHost(for: loop, in: runLoop)
  }

  /// Makes the waits of our loop waits in Core Foundation's.
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

  /// From now on a mark says in the default mode too whether our loop has items: a run of Core Foundation's that is
  /// nested in work of the main dispatch queue would find the mode empty otherwise.
  func noteHosting(of loop: RunLoopCore.RunLoop, in runLoop: CFRunLoop) {
    guard !hasHosted.exchange(true, ordering: .sequentiallyConsistent) else { return }
    serve(.default, of: runLoop).updateMark(of: loop)
  }

  /// Whether a mark may stand in a mode.
  ///
  /// In the default mode there is none as long as our loop waits by itself, because it asks before each wait whether
  /// that mode has items of others. The main dispatch queue keeps a run alive there.
  func mayMark(_ name: RunLoopCore.RunLoop.Mode) -> Bool {
    name != .default || hasHosted.load(ordering: .sequentiallyConsistent)
  }

  /// Whether Core Foundation's main loop has items in a mode, other than a mark; called on the main thread.
  private func hasItems(in name: RunLoopCore.RunLoop.Mode, of runLoop: CFRunLoop) -> Bool {
    if let mode = mode(name) { return mode.hasItemsOfOthers() }
    return rlk_has_items(
      Unmanaged.passUnretained(runLoop).toOpaque(), Unmanaged.passUnretained(name.coreFoundationMode).toOpaque()) != 0
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

  func stopInnermost(of other: AnyObject) -> Bool {
    guard isOn, let loop = RunLoopCore.RunLoop.mainIfMade else { return false }
    // The caller may have made it just now, by asking for the loop that is to stop.
    findLoop(making: false)
    guard let runLoop, runLoop === other else { return false }
    guard loop.isInnermostItself else { return false }
    loop.stop()
    return true
  }

  /// Begins to serve our loop in the runs of Core Foundation's; has no effect if it has begun.
  ///
  /// Can be called from any thread.
  func attach(to runLoop: CFRunLoop, _ loop: RunLoopCore.RunLoop) {
    guard !isAttached.load(ordering: .acquiring) else { return }
    findLoop(making: false)
    // Set first: an item that is added from now on is seen by the thread that adds it, and one that was added before is
    // in a mode that is served here.
    guard !isAttached.exchange(true, ordering: .sequentiallyConsistent) else { return }
    for name in loop.modes {
      serve(name, of: runLoop).updateMark(of: loop)
    }
    // It may sleep by itself.
    if RunLoopCore.RunLoop.currentIfMade !== loop { loop.wakeUp() }
  }

  /// The served mode of a name, which becomes one.
  ///
  /// Its observers stand when this returns.
  @discardableResult
  func serve(_ name: RunLoopCore.RunLoop.Mode, of runLoop: CFRunLoop) -> ServedMode {
    let mode = lock.withLock { () -> ServedMode in
      let mode = modes[name] ?? ServedMode(name, of: runLoop, for: self)
      modes[name] = mode
      return mode
    }
    // A run of the mode that sleeps is to see the observers before what comes next for ours.
    if mode.observe(), !RunLoopCore.RunLoop.isMainThread { CFRunLoopWakeUp(runLoop) }
    return mode
  }

  /// The served mode of a name, if it is one.
  ///
  /// Any thread.
  func mode(_ name: RunLoopCore.RunLoop.Mode) -> ServedMode? { lock.withLock { modes[name] } }
}
