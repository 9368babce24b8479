// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

/// The items of our loop in a mode of Core Foundation's main loop during a run: a timer for our next deadline, a
/// source for our descriptors, and a source that reports that one of our sources was handled.
///
/// Used only on the main thread.
final class RunItems: @unchecked Sendable {
  // Sendable: used only on the main thread.

  private unowned let mode: ServedMode
  private var timer: CFRunLoopTimer?
  private var isTimerIn = false
  private var descriptors: WatchedDescriptors?
  private var areDescriptorsIn = false
  private var handled: CFRunLoopSource?
  private var isHandledIn = false

  init(in mode: ServedMode) { self.mode = mode }

  /// Lets the run return if it returns after a source.
  func noteHandled() {
    // The source is performed after all others, because a run that returns after a source would otherwise only perform
    // it.
    if handled == nil { handled = makeEmptySource(2, order: .max) }
    if !isHandledIn { CFRunLoopAddSource(mode.runLoop, handled, mode.coreFoundationName) }
    isHandledIn = true
    CFRunLoopSourceSignal(handled)
  }

  /// Whether the run has not yet noticed that a source was handled.
  var isHandledPending: Bool { isHandledIn && handled.map { rlk_is_signalled(address($0)) != 0 } ?? false }

  /// Removes the source once the run has noticed it, so that it no longer keeps the mode alive.
  func forgetHandled() {
    guard isHandledIn, !isHandledPending else { return }
    isHandledIn = false
    CFRunLoopRemoveSource(mode.runLoop, handled, mode.coreFoundationName)
  }

  /// Sets the date at which the service of the mode is called.
  func setTimer(_ deadline: Tick) {
    guard deadline != .never else {
      if isTimerIn { CFRunLoopRemoveTimer(mode.runLoop, timer, mode.coreFoundationName) }
      isTimerIn = false
      return
    }
    let seconds = Double(max(0, deadline - Tick.monotonicNow)) / 1e9
    let date = CFAbsoluteTimeGetCurrent() + seconds
    if let timer {
      CFRunLoopTimerSetNextFireDate(timer, date)
    } else {
      // The timer repeats after an unreachable interval, so that it can be set again.
      timer = CFRunLoopTimerCreateWithHandler(nil, date, 1e9, 0, 0) { [unowned mode] _ in
        mode.service.deadlineCame(in: mode)
      }
    }
    if !isTimerIn { CFRunLoopAddTimer(mode.runLoop, timer, mode.coreFoundationName) }
    isTimerIn = true
  }

  /// Calls the service of the mode, as a handled source, when a descriptor is readable.
  func watch(_ descriptor: OwnedDescriptor?) {
    if areDescriptorsIn {
      CFRunLoopRemoveSource(mode.runLoop, descriptors?.source, mode.coreFoundationName)
      areDescriptorsIn = false
    }
    guard let descriptor else { return }
    if descriptors?.descriptor !== descriptor { descriptors = WatchedDescriptors(descriptor, mode) }
    CFRunLoopAddSource(mode.runLoop, descriptors?.source, mode.coreFoundationName)
    areDescriptorsIn = true
  }

  /// Removes all items at the end of the run.
  func clear() {
    watch(nil)
    setTimer(.never)
    // Descriptors that are no longer watched are not kept open.
    descriptors = nil
    forgetHandled()
    guard isHandledIn, let source = handled else { return }
    // The source cannot be unsignalled, and must not affect the next run.
    isHandledIn = false
    CFRunLoopSourceInvalidate(source)
    handled = nil
  }

  private func address(_ source: CFRunLoopSource) -> UnsafeRawPointer {
    UnsafeRawPointer(Unmanaged.passUnretained(source).toOpaque())
  }
}

/// The descriptors of one of our modes, as a single source of Core Foundation's loop.
private final class WatchedDescriptors {
  /// Kept open as long as it is watched.
  let descriptor: OwnedDescriptor
  private unowned let mode: ServedMode
  private(set) var source: CFRunLoopSource?

  init(_ descriptor: OwnedDescriptor, _ mode: ServedMode) {
    self.descriptor = descriptor
    self.mode = mode
    var context = CFRunLoopSourceContext1()
    context.version = 1
    // The source is invalidated before this object is released.
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in WatchedDescriptors.at(info)?.descriptor.number ?? -1 }
    // Core Foundation reads from the descriptor, which fails for an epoll set, and then calls this.
    context.perform = { info in
      if let mode = WatchedDescriptors.at(info)?.mode { mode.service.serve(mode) }
    }
    source = context.makeSource()
  }

  deinit { if let source { CFRunLoopSourceInvalidate(source) } }

  private static func at(_ info: UnsafeMutableRawPointer?) -> WatchedDescriptors? {
    info.map { Unmanaged<WatchedDescriptors>.fromOpaque($0).takeUnretainedValue() }
  }
}
