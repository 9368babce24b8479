// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import Foundation
import RunLoopCore

/// Core Foundation's run loop of a thread, in which the thread's loop of ours waits.
///
/// A wait is a run of Core Foundation's loop that ends when a source was handled. Among its sources is the gate of our
/// loop, which tells it of everything: posts, descriptors and deadlines. The loop's deadlines are not given to
/// `CFRunLoopRunInMode` as its time: that makes a dispatch timer for each run, which costs more than the rest of the
/// run and is late; and our wake-ups are not `CFRunLoopWakeUp`, which is dropped before the run has begun.
final class CoreFoundationHost: RunLoopHost, @unchecked Sendable {
  // Sendable: what changes belongs to the loop's thread; Core Foundation's functions may be called on any.

  /// A mode of Core Foundation's loop, as far as we have to do with it.
  final class Mode {
    let ours: RunLoopCore.RunLoop.Mode
    let name: CFRunLoopMode
    var hasSource = false
    var isCommon = false
    /// The run whose stop of the mode may be left over: somebody else may have stopped the run that it was to end, and
    /// then that stop was answered first.
    var leftOver: LeftOver?

    init(_ name: RunLoopCore.RunLoop.Mode) {
      ours = name
      self.name = name.coreFoundationMode
    }
  }

  /// Whose run it was that ours was to end by a stop of its mode.
  enum LeftOver {
    case ofRun(depth: Int)
    /// That run has ended.
    case ofNobody
  }

  /// One wait, or look, in which Core Foundation's loop may run nested runs that are not ours.
  struct Wait {
    let mode: Mode
    let hosted: HostedMode
    /// Whether it is a look, which ends after one pass.
    var isLook = false
    /// Whether it ends before a pass, and only takes away the stop of its mode that is left over.
    var isClearing = false
    /// How many runs of modes that we know are active, this one's among them.
    var depth = 0
    /// Whether the pass of this wait's run has called observers before it waits: it has handled no source then.
    var isPassWaiting = false
    /// Whether our source has ended the run, and whether another was handled in the same pass.
    var isOurs = false
    var isShared = false
    /// Whether our source was served in a nested run that is not ours, and has to be served again.
    var isOwed = false
    /// Whether a pass of the run is over, and whether nothing was left after it.
    var hasPassed = false
    var hasBegunPass = false
    var isEmptied = false
    /// Whether we have ended the run by a stop of its mode.
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
  /// The source that makes a look of a run, once it was needed; see `CoreFoundationHost+Looking.swift`.
  var lookSource: CFRunLoopSource?
  /// The depths of the runs of ours that somebody has stopped, who have not heard of it yet.
  var owedStops: Set<Int> = []
  let service: MainThreadService?
  /// Whether the loop of another thread than the main one is hosted without a call.
  ///
  /// Sources of Core Foundation's then keep no run alive that has no time limit, because it would never end.
  var isAutomatic: Bool

  /// How many descriptors Core Foundation's loop and its modes may need, whose lack ends the process.
  static let spareDescriptors = 6

  /// Makes a host of the calling thread's loop.
  init(_ gate: Gate, service: MainThreadService? = nil, isAutomatic: Bool = false) {
    self.gate = gate
    self.isAutomatic = isAutomatic
    self.service = service
    runLoop = CFRunLoopGetCurrent()
    foundation = Foundation.RunLoop.current
    source = makeSource()
    // The first of all at the entry and the last of all later, so that a run within another's observer is
    // distinguished.
    observers = [
      makeObserver([.entry], order: .min),
      makeObserver([.beforeSources, .beforeWaiting, .exit], order: .max),
    ].compactMap { $0 }
    service?.host = self
  }

  deinit { invalidate() }
}

// What our loop asks.
extension CoreFoundationHost {
  func wait(in hosted: HostedMode) -> HostReport {
    let mode = known(hosted)
    guard let source, CFRunLoopSourceIsValid(source) else { return .isGone }
    begin(hosted)
    guard owedStops.remove(hosted.depth) == nil else { return .stopped }
    addSource(to: mode)
    // A run that returns after a source would lose a stop that comes in the same turn. Unless ours is to end so too,
    // the wait goes on, and our source ends it by a stop of the mode, which is answered after any other.
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
    // With our source in it the mode is not empty, unless the hosting has ended meanwhile, or the loop has.
    default: return .isGone
    }
  }

  func keepsAlive(_ hosted: HostedMode) -> Bool {
    let mode = known(hosted)
    removeSource(from: mode)
    // The last of ours may have gone since the mark was set for it.
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
    // A wait that goes on needs our source to return.
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

// What Core Foundation's loop calls.
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
    if activity == .entry { wait.depth += 1 }
    if activity == .exit { wait.depth -= 1 }
    self.wait = wait
    if wait.isClearing, wait.depth == 1 { stop(wait.mode) }
    guard wait.depth == 1, activity == .beforeSources || activity == .beforeWaiting else { return }
    self.wait?.isPassWaiting = activity == .beforeWaiting
    self.wait?.hasBegunPass = true
    self.wait?.isOwed = false
    // What a nested run was notified of, this one is to be notified of again.
    if wait.isOwed { gate.open() }
    guard !wait.isLook else { return endLook(of: wait) }
    guard activity == .beforeWaiting else { return }
    // A mode that is empty after a pass keeps nobody waiting.
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
    // Whoever ends the hosting invalidates what has this address before the host is released.
    info.map { Unmanaged<CoreFoundationHost>.fromOpaque($0).takeUnretainedValue() }
  }

  private func makeSource() -> CFRunLoopSource? {
    var context = CFRunLoopSourceContext1()
    context.version = 1
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in CoreFoundationHost.at(info)?.gate.descriptor ?? -1 }
    // Core Foundation reads from the descriptor, which an epoll set answers with an error, and then calls this.
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

// What the service of the main thread asks, which knows whose each run of Core Foundation's loop is.
extension CoreFoundationHost {
  /// Takes our source out of a mode that somebody else runs.
  func remove(from name: RunLoopCore.RunLoop.Mode) {
    if let mode = modes[name] { removeSource(from: mode) }
  }

  /// Puts our source back into the mode of a wait that goes on.
  func restore(to name: RunLoopCore.RunLoop.Mode) {
    if let wait, !wait.isLook, wait.mode.ours == name { addSource(to: wait.mode) }
  }
}

// Core Foundation's modes.
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
    // Before the first run of ours in it: the service is to see which runs are ours.
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
  /// A source of this context, which Core Foundation wants to be given as one of the other version.
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
      // Whole, whatever is in it.
      CFStringCreateWithBytes(
        nil, Array(rawValue.utf8), rawValue.utf8.count, CFStringBuiltInEncodings.UTF8.rawValue, false)
    }
  }
}
