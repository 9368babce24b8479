// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import Foundation
import RunLoopCore

/// The Core Foundation run loop of a thread, in which our loop of that thread waits.
///
/// A wait is a run of Core Foundation's loop that ends when a source was handled. One of its sources is the gate of
/// our loop, which opens for posts, descriptors and deadlines. Deadlines are not passed to `CFRunLoopRunInMode` as its
/// time limit, because that creates a dispatch timer for each run, which costs more than the rest of the run and is
/// late. Wake-ups do not use `CFRunLoopWakeUp`, which has no effect before the run has begun.
final class CoreFoundationHost: RunLoopHost, @unchecked Sendable {
  // Sendable: the variables are used only on the loop's thread, and by the thread that releases the last reference.
  // Other threads use only the constants.

  /// A mode of Core Foundation's loop, with our state for it.
  final class Mode {
    let ours: RunLoopCore.RunLoop.Mode
    let name: CFRunLoopMode
    var hasSource = false
    var isCommon = false
    /// The run whose stop of the mode may be left over, because another stop of the same run was handled first.
    var leftOver: LeftOver?

    init(_ name: RunLoopCore.RunLoop.Mode) {
      ours = name
      self.name = name.coreFoundationMode
    }
  }

  /// The run that a stop of its mode was meant to end.
  enum LeftOver {
    case ofRun(depth: Int)
    /// That run has ended.
    case ofNobody
  }

  /// A wait or a look, in which Core Foundation's loop may run nested runs that are not ours.
  struct Wait {
    let mode: Mode
    let hosted: HostedMode
    /// Whether this is a look, which ends after one pass.
    var isLook = false
    /// Whether this run only consumes a leftover stop of its mode, and ends before its first pass.
    var isClearing = false
    /// The number of active runs of known modes, including this one.
    var depth = 0
    /// Whether this run's pass has called the observers before waiting, and so has not handled a source.
    var isPassWaiting = false
    /// Whether our source ended the run, and whether another source was handled in the same pass.
    var isOurs = false
    var isShared = false
    /// Whether our source was served in a nested run that is not ours, and must be served again.
    var isOwed = false
    /// Whether a pass of the run is finished, and whether the mode was empty after it.
    var hasPassed = false
    var hasBegunPass = false
    var isEmptied = false
    /// Whether the run was ended by our stop of its mode.
    var hasStoppedMode = false
  }

  let runLoop: CFRunLoop
  /// Foundation's object for the same loop.
  let foundation: Foundation.RunLoop
  private let gate: Gate
  private var source: CFRunLoopSource?
  private var observers: [CFRunLoopObserver] = []
  var modes: [RunLoopCore.RunLoop.Mode: Mode] = [:]
  var wait: Wait?
  private(set) var isEnding = false
  /// The source that ends a look, created on first use; see `CoreFoundationHost+Looking.swift`.
  var lookSource: CFRunLoopSource?
  /// The depths of our runs that were stopped and have not been notified yet.
  var owedStops: Set<Int> = []
  let service: MainThreadService?
  /// Whether this hosts the loop of a thread other than the main one automatically.
  ///
  /// If so, sources of Core Foundation do not keep a run without a time limit alive, because it would never end.
  var isAutomatic: Bool

  /// The number of descriptors that Core Foundation may need for its loop and modes, without which it aborts.
  static let spareDescriptors = 6

  /// Creates a host for the calling thread's loop.
  init(_ gate: Gate, service: MainThreadService? = nil, isAutomatic: Bool = false) {
    self.gate = gate
    self.isAutomatic = isAutomatic
    self.service = service
    runLoop = CFRunLoopGetCurrent()
    foundation = Foundation.RunLoop.current
    source = makeSource()
    // The first observer is called before all others at the entry, and the second after all others, so that a run
    // within another observer is recognised.
    observers = [
      makeObserver(service == nil ? [.entry, .afterWaiting] : [.entry], order: .min),
      makeObserver([.beforeSources, .beforeWaiting, .exit], order: .max),
    ].compactMap { $0 }
    service?.host = self
  }

  deinit { invalidate() }
}

// Called by our loop.
extension CoreFoundationHost {
  func wait(in hosted: HostedMode) -> HostReport {
    let mode = known(hosted)
    guard let source, CFRunLoopSourceIsValid(source) else { return .isGone }
    begin(hosted)
    guard owedStops.remove(hosted.depth) == nil else { return .stopped }
    addSource(to: mode)
    // A run that returns after a source would lose a stop that arrives in the same turn. Unless our run ends after a
    // source too, the wait continues until our source ends it with a stop of the mode, which is handled last.
    let (result, ended, leftOver) = run(
      Wait(mode: mode, hosted: hosted), for: .infinity, endsAfterSource: hosted.endsAfterSource)
    switch result {
    case .handledSource:
      guard ended.isOurs, !ended.isShared else { return .handledSource }
      return ended.isEmptied ? .isEmptied : []
    case .stopped:
      guard !isStoppedByLeftOver(leftOver, ended) else { return wait(in: hosted) }
      guard ended.hasStoppedMode else { return .stopped }
      mode.leftOver = .ofRun(depth: hosted.depth)
      return ended.isEmptied ? .isEmptied : []
    case .timedOut: return []
    // Our source keeps the mode from being empty, unless the hosting or the loop has ended.
    default: return .isGone
    }
  }

  func keepsAlive(_ hosted: HostedMode) -> Bool {
    let mode = known(hosted)
    removeSource(from: mode)
    // The last of our items may have been removed since the mark was set.
    if let served = service?.mode(mode.ours), served.keepsAlive { served.updateMark(of: .current) }
    if isAutomatic, hosted.isWithoutLimit { return CFRunLoopGetNextTimerFireDate(runLoop, mode.name) != 0 }
    return !_CFRunLoopFinished(runLoop, mode.name)
  }

  func runHasFinished(_ hosted: HostedMode, of loop: RunLoopCore.RunLoop) {
    let mode = known(hosted)
    guard isAutomatic, !_CFRunLoopFinished(runLoop, mode.name) else { return }
    Diagnostic.unservedItems.report(
      "a run of the run loop of \(loop.threadDescription) has ended, and Foundation's run loop of that thread has sources in "
        + "the mode \(mode.ours): in a run without a time limit only timers of that loop keep the mode alive; call "
        + "RunLoop.current.serveCoreFoundation() on that thread, and sources do too")
  }

  func end() {
    isEnding = true
    // A wait in progress needs our source to return.
    if wait == nil { invalidate() }
  }

  func invalidate() {
    if let source { CFRunLoopSourceInvalidate(source) }
    source = nil
    if let lookSource { CFRunLoopSourceInvalidate(lookSource) }
    lookSource = nil
    for observer in observers { CFRunLoopObserverInvalidate(observer) }
    observers = []
    modes = [:]
  }
}

// Called by Core Foundation's loop.
extension CoreFoundationHost {
  private func gateHasOpened() {
    guard var wait else { return }
    if wait.depth == 1 {
      wait.isOurs = true
      wait.isShared = !wait.isPassWaiting
      if !wait.hosted.endsAfterSource {
        wait.hasStoppedMode = true
        stop(wait.mode)
      }
    } else {
      wait.isOwed = true
    }
    self.wait = wait
  }

  private func observe(_ activity: CFRunLoopActivity) {
    guard var wait else { return }
    // On the main thread, the service's observers do this, because they see all runs.
    if service == nil { RunLoopCore.RunLoop.current.noteHost(activity) }
    guard activity != .afterWaiting else { return }
    if activity == .entry { wait.depth += 1 }
    if activity == .exit { wait.depth -= 1 }
    self.wait = wait
    if wait.isClearing, wait.depth == 1 { stop(wait.mode) }
    guard wait.depth == 1, activity == .beforeSources || activity == .beforeWaiting else { return }
    self.wait?.isPassWaiting = activity == .beforeWaiting
    self.wait?.hasBegunPass = true
    self.wait?.isOwed = false
    // If a nested run received the notification, this run must receive it again.
    if wait.isOwed { gate.open() }
    guard !wait.isLook else { return endLook(of: wait) }
    guard activity == .beforeWaiting else { return }
    // A mode that is empty after a pass does not keep the run waiting.
    if wait.hasPassed, !keepsAliveDuringWait(wait) {
      self.wait?.isEmptied = true
      gate.open()
    }
    self.wait?.hasPassed = true
  }

  private func keepsAliveDuringWait(_ wait: Wait) -> Bool {
    guard RunLoopCore.RunLoop.current.itemCount(of: wait.mode.ours) == 0 else { return true }
    let answer = keepsAlive(wait.hosted)
    addSource(to: wait.mode)
    return answer
  }

  static func at(_ info: UnsafeMutableRawPointer?) -> CoreFoundationHost? {
    // Everything that refers to this address is invalidated before the host is released.
    info.map { Unmanaged<CoreFoundationHost>.fromOpaque($0).takeUnretainedValue() }
  }

  private func makeSource() -> CFRunLoopSource? {
    var context = CFRunLoopSourceContext1()
    context.version = 1
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in CoreFoundationHost.at(info)?.gate.descriptor ?? -1 }
    // Core Foundation reads from the descriptor, which fails for an epoll set, and then calls this.
    context.perform = { info in CoreFoundationHost.at(info)?.gateHasOpened() }
    return context.makeSource()
  }

  private func makeObserver(_ activities: [CFRunLoopActivity], order: CFIndex) -> CFRunLoopObserver? {
    var context = CFRunLoopObserverContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    let mask = activities.reduce(0) { $0 | $1.rawValue }
    return CFRunLoopObserverCreate(
      nil, mask, true, order, { _, activity, info in CoreFoundationHost.at(info)?.observe(activity) }, &context)
  }
}

// Called by the service of the main thread, which attributes each run of Core Foundation's loop.
extension CoreFoundationHost {
  /// Removes our source from a mode that other code runs.
  func remove(from name: RunLoopCore.RunLoop.Mode) {
    if let mode = modes[name] { removeSource(from: mode) }
  }

  /// Adds our source back to the mode of a wait in progress.
  func restore(to name: RunLoopCore.RunLoop.Mode) {
    if let wait, !wait.isLook, wait.mode.ours == name { addSource(to: wait.mode) }
  }
}

// Modes of Core Foundation.
extension CoreFoundationHost {
  func known(_ hosted: HostedMode) -> Mode {
    let mode = modes[hosted.name] ?? makeMode(hosted.name)
    if hosted.isCommon, !mode.isCommon {
      mode.isCommon = true
      CFRunLoopAddCommonMode(runLoop, mode.name)
    }
    return mode
  }

  private func makeMode(_ name: RunLoopCore.RunLoop.Mode) -> Mode {
    let mode = Mode(name)
    modes[name] = mode
    // The service must be attached before our first run in the mode, so that it recognises our runs.
    service?.serve(name, of: runLoop)
    for observer in observers { CFRunLoopAddObserver(runLoop, observer, mode.name) }
    return mode
  }

  private func addSource(to mode: Mode) {
    guard !mode.hasSource, let source else { return }
    mode.hasSource = true
    CFRunLoopAddSource(runLoop, source, mode.name)
  }

  func removeSource(from mode: Mode) {
    guard mode.hasSource, let source else { return }
    mode.hasSource = false
    CFRunLoopRemoveSource(runLoop, source, mode.name)
  }
}

extension CFRunLoopSourceContext1 {
  /// Creates a source with this context, which must be passed to Core Foundation as a context of version 0.
  func makeSource() -> CFRunLoopSource? {
    withUnsafePointer(to: self) { context in
      let context = UnsafeMutableRawPointer(mutating: context)
      return CFRunLoopSourceCreate(nil, 0, context.assumingMemoryBound(to: CFRunLoopSourceContext.self))
    }
  }
}

extension RunLoopCore.RunLoop.Mode {
  /// The mode of the same name in Core Foundation's loops.
  var coreFoundationMode: CFRunLoopMode {
    switch self {
    case .default: kCFRunLoopDefaultMode
    case .common: kCFRunLoopCommonModes
    default:
      // Preserves the whole name, even if it contains zero bytes.
      CFStringCreateWithBytes(
        nil, Array(rawValue.utf8), rawValue.utf8.count, CFStringBuiltInEncodings.UTF8.rawValue, false)
    }
  }
}

extension RunLoopCore.RunLoop {
  /// Shows the instruments whether Core Foundation's loop runs items or waits.
  ///
  /// Without this, a hang in an item of Core Foundation would be shown as a sleep, because this loop is asleep there.
  func noteHost(_ activity: CFRunLoopActivity) {
    if activity == .beforeWaiting { noteHostWaits() } else if activity != .exit { noteHostRuns() }
  }
}
