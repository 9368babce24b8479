// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

/// What of ours stands in a mode of Core Foundation's main loop while a run of that goes on: a timer for our next
/// deadline, a source for our descriptors, and one that says that a source of ours was handled.
///
/// The main thread's.
final class RunItems: @unchecked Sendable {
  // Sendable: the main thread's.

  private unowned let mode: ServedMode
  private var timer: CFRunLoopTimer?
  private var isTimerIn = false
  private var descriptors: WatchedDescriptors?
  private var areDescriptorsIn = false
  private var handled: CFRunLoopSource?
  private var isHandledIn = false

  init(in mode: ServedMode) { self.mode = mode }

  /// Lets the run return if it is to do so after a source.
  func noteHandled() {
    // Behind all others: a run that returns after a source performs one, which would always be this.
    if handled == nil { handled = makeEmptySource(2, order: .max) }
    if !isHandledIn { CFRunLoopAddSource(mode.runLoop, handled, mode.coreFoundationName) }
    isHandledIn = true
    CFRunLoopSourceSignal(handled)
  }

  /// Whether the run has yet to see that a source was handled.
  var isHandledPending: Bool { isHandledIn && handled.map { rlk_is_signalled(address($0)) != 0 } ?? false }

  /// Once the run has seen that a source was handled, nothing keeps the mode alive for that.
  func forgetHandled() {
    guard isHandledIn, !isHandledPending else { return }
    isHandledIn = false
    CFRunLoopRemoveSource(mode.runLoop, handled, mode.coreFoundationName)
  }

  /// Calls the service of the mode at a date.
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
      // It repeats, though so late that it does not, since it is to be set again.
      timer = CFRunLoopTimerCreateWithHandler(nil, date, 1e9, 0, 0) { [unowned mode] _ in
        mode.service.deadlineCame(in: mode)
      }
    }
    if !isTimerIn { CFRunLoopAddTimer(mode.runLoop, timer, mode.coreFoundationName) }
    isTimerIn = true
  }

  /// Calls the service of the mode when a descriptor is readable, as a source that is handled.
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

  /// The run is over.
  func clear() {
    watch(nil)
    setTimer(.never)
    // What nobody watches any more is not held open.
    descriptors = nil
    forgetHandled()
    guard isHandledIn, let source = handled else { return }
    // It cannot be unsignalled, and the next run is not to hear of it.
    isHandledIn = false
    CFRunLoopSourceInvalidate(source)
    handled = nil
  }

  private func address(_ source: CFRunLoopSource) -> UnsafeRawPointer {
    UnsafeRawPointer(Unmanaged.passUnretained(source).toOpaque())
  }
}

/// The descriptors of a mode of ours, as one source of Core Foundation's loop.
private final class WatchedDescriptors {
  /// Held open as long as it is watched.
  let descriptor: OwnedDescriptor
  private unowned let mode: ServedMode
  private(set) var source: CFRunLoopSource?

  init(_ descriptor: OwnedDescriptor, _ mode: ServedMode) {
    self.descriptor = descriptor
    self.mode = mode
    var context = CFRunLoopSourceContext1()
    context.version = 1
    // Whoever lets go of this object invalidates the source before.
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in WatchedDescriptors.at(info)?.descriptor.number ?? -1 }
    // Core Foundation reads from the descriptor, which an epoll set answers with an error, and then calls this.
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
