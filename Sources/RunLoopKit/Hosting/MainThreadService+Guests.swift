// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore

// Support for the main loop as a guest of a third loop, such as GLib's, where our loop and Core Foundation's do not
// wait in each other. Our loop watches the descriptors of the other loop's mode, and looks when they are ready. Main
// thread only.
extension MainThreadService {
  func guestBegins(of loop: RunLoopCore.RunLoop, in name: RunLoopCore.RunLoop.Mode) {
    guard isOn else { return }
    if let look = looks[name] {
      looks[name] = (look.source, look.guestCount + 1)
      return
    }
    findLoop(making: true)
    guard let runLoop else { return }
    attach(to: runLoop, loop)
    let mode = serve(name, of: runLoop)
    guard let descriptor = mode.portSet else { return }
    let source = RunLoopCore.RunLoop.DescriptorSource(descriptor: descriptor, events: .readable) { [weak self] _, _ in
      self?.look(in: mode)
    }
    do {
      try loop.add(source, forMode: name)
      // Items that were added before the guest was created are not reported by the descriptor.
      loop.perform(inModes: [name]) { [weak self] in self?.look(in: mode) }
    } catch {
      Diagnostic.coreFoundation.report(
        "Core Foundation's main run loop is not served in the mode \(name), in which RunLoop.main is a guest: \(error)")
      return
    }
    looks[name] = (source, 1)
  }

  /// Serves everything that is ready in a mode of Core Foundation's.
  private func look(in mode: ServedMode) {
    guard let look = looks[mode.name] else { return }
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
    looks[name] = look.guestCount > 1 ? (look.source, look.guestCount - 1) : nil
    if look.guestCount == 1 { look.source.invalidate() }
  }
}
