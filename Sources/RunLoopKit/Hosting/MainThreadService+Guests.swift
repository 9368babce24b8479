// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

// Support for the main loop as a guest of a third loop, such as GLib's, where our loop and Core Foundation's do not
// wait in each other. Our loop watches the descriptors of the other loop's mode, and looks when they are ready. Main
// thread only.
extension MainThreadService {
  /// The source with which a guest serves a mode of Core Foundation's loop.
  struct Look {
    let mode: ServedMode
    let source: RunLoopCore.RunLoop.DescriptorSource
    /// The number of explicit guests in the mode.
    var guestCount: Int
    /// Whether the source is in our loop's mode.
    ///
    /// It is not while a run of Core Foundation's loop serves ours, because that loop then watches the epoll set of our
    /// mode, and neither set may contain the other.
    var isIn = false
  }

  func guestBegins(of loop: RunLoopCore.RunLoop, in name: RunLoopCore.RunLoop.Mode) {
    guard isOn else { return }
    if looks[name] != nil {
      looks[name]?.guestCount += 1
    } else {
      findLoop(making: true)
      guard let runLoop else { return }
      attach(to: runLoop, loop)
      let mode = serve(name, of: runLoop)
      guard let descriptor = mode.portSet else { return }
      let source = RunLoopCore.RunLoop.DescriptorSource(descriptor: descriptor, events: .readable) { [weak self] _, _ in
        self?.look(in: mode)
      }
      looks[name] = Look(mode: mode, source: source, guestCount: 1)
    }
    let wasIn = looks[name]?.isIn ?? false
    settleLooks(of: loop)
    // Items that were added before the guest was created are not reported by the descriptor.
    if !wasIn { lookSoon(in: name, of: loop) }
  }

  /// Looks in every mode after a run of Core Foundation's loop in an explicit guest's call-out.
  ///
  /// A wake-up has no effect while that run is awake, so what other threads added at its end is not reported.
  func lookAgain(in loop: RunLoopCore.RunLoop) {
    guard loop.isExplicitGuest else { return }
    for name in looks.keys { lookSoon(in: name, of: loop) }
  }

  private func lookSoon(in name: RunLoopCore.RunLoop.Mode, of loop: RunLoopCore.RunLoop) {
    guard let mode = looks[name]?.mode else { return }
    loop.perform(inModes: [name]) { [weak self] in self?.look(in: mode) }
  }

  /// Lets an explicit guest determine again what serves our loop, after a guest that was nested in it.
  func returnsToGuest(_ loop: RunLoopCore.RunLoop) {
    loop.removeHost()
    settleLooks(of: loop)
  }

  /// Keeps the sources in our loop exactly as long as its innermost guest is explicit.
  func settleLooks(of loop: RunLoopCore.RunLoop) {
    let isWanted = loop.isExplicitGuest
    for (name, look) in looks where look.isIn != isWanted {
      if isWanted {
        looks[name]?.isIn = insert(look, into: loop)
      } else {
        loop.remove(look.source, forMode: name)
        looks[name]?.isIn = false
      }
    }
  }

  /// Returns whether the source is in the mode now.
  private func insert(_ look: Look, into loop: RunLoopCore.RunLoop) -> Bool {
    let name = look.mode.name
    // An outer turn may still watch the set of our mode.
    stopWatching()
    do {
      try loop.add(look.source, forMode: name)
      return true
    } catch {
      Diagnostic.coreFoundation.report(
        "Core Foundation's main run loop is not served in the mode \(name), in which RunLoop.main is a guest: \(error)")
      return false
    }
  }

  /// Serves everything that is ready in a mode of Core Foundation's.
  private func look(in mode: ServedMode) {
    guard let look = looks[mode.name], look.isIn else { return }
    guard isOn else {
      looks[mode.name] = nil
      look.source.invalidate()
      return
    }
    // A run of an empty mode would return before consuming a wake-up, and the mode's descriptors would stay ready.
    CFRunLoopAddSource(mode.runLoop, lookKeeper, mode.coreFoundationName)
    _ = runOwn(mode.name) { CFRunLoopRunInMode(mode.coreFoundationName, 0, true) }
    CFRunLoopRemoveSource(mode.runLoop, lookKeeper, mode.coreFoundationName)
    // Wake-ups from other threads report their blocks and signals.
    if runs.isEmpty, let offset = runDataOffset {
      rlk_heed_wakeups(Unmanaged.passUnretained(mode.runLoop).toOpaque(), offset)
    }
  }

  func guestEnds(of loop: RunLoopCore.RunLoop, in name: RunLoopCore.RunLoop.Mode) {
    guard let look = looks[name] else { return }
    looks[name]?.guestCount -= 1
    if look.guestCount == 1 {
      looks[name] = nil
      look.source.invalidate()
    }
    settleLooks(of: loop)
  }
}
