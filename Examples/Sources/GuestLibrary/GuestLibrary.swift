// SPDX-License-Identifier: Apache-2.0

// Swift as a library in a program whose main loop is another's: Qt's (Qt/main.cpp), or asyncio's (Python/guest.py).
// What the program has to call is in C.

import Dispatch
import RunLoopCore

@MainActor private var guest: RunLoop.Guest?

/// Makes the main loop a guest; returns the descriptor that the program's loop watches, or −1.
///
/// Called on the main thread, as all of these are.
@_cdecl("guest_begin")
public func guestBegin() -> Int32 {
  MainActor.assumeIsolated {
    // The descriptor is all that the host has to know: it becomes readable at deadlines too.
    guest = try? RunLoop.Guest(signalsDeadlines: true)
    return guest?.descriptor ?? -1
  }
}

/// Called whenever the descriptor is readable.
@_cdecl("guest_service")
public func guestService() { MainActor.assumeIsolated { _ = guest?.service() } }

/// Called when the program's loop no longer watches the descriptor.
@_cdecl("guest_end")
public func guestEnd() {
  MainActor.assumeIsolated {
    guest?.invalidate()
    guest = nil
  }
}

/// What is called with a text, and with what was passed beside it.
public typealias Answer = @convention(c) @Sendable (UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> Void

/// Starts a task of the main actor, which calls the answer on the main thread, once.
@_cdecl("guest_load")
public func guestLoad(_ answer: Answer, _ context: UnsafeMutableRawPointer?) {
  let context = UInt(bitPattern: context)
  Task { @MainActor in
    let sum = await Task.detached { (1...1000).reduce(0, +) }.value
    try? await Task.sleep(for: .milliseconds(20))
    await nextTurn(after: .milliseconds(20))
    "a task says \(sum)".withCString { answer($0, UnsafeMutableRawPointer(bitPattern: context)) }
  }
}

/// Waits for the main dispatch queue.
@MainActor private func nextTurn(after delay: DispatchTimeInterval) async {
  await withCheckedContinuation { continuation in
    DispatchQueue.main.asyncAfter(deadline: .now() + delay) { continuation.resume() }
  }
}
