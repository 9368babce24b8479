// SPDX-License-Identifier: Apache-2.0

// Swift as a library in a program with another main loop: Qt's (Qt/main.cpp) or asyncio's (Python/guest.py). The
// program calls these C functions.

import Dispatch
import RunLoopCore

@MainActor private var guest: RunLoop.Guest?

/// Makes the main loop a guest, and returns the descriptor for the program's loop to watch, or −1.
///
/// All of these functions must be called on the main thread.
@_cdecl("guest_begin")
public func guestBegin() -> Int32 {
  MainActor.assumeIsolated {
    // The host needs to know only the descriptor, which becomes readable at deadlines too.
    guest = try? RunLoop.Guest(signalsDeadlines: true)
    return guest?.descriptor ?? -1
  }
}

/// Services the loop; called whenever the descriptor is readable.
@_cdecl("guest_service")
public func guestService() { MainActor.assumeIsolated { _ = guest?.service() } }

/// Ends the guest; called when the program's loop no longer watches the descriptor.
@_cdecl("guest_end")
public func guestEnd() {
  MainActor.assumeIsolated {
    guest?.invalidate()
    guest = nil
  }
}

/// A function that receives a text and the context passed with it.
public typealias Answer = @convention(c) @Sendable (UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> Void

/// Starts a task of the main actor, which calls `answer` once on the main thread.
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

/// Suspends until the main dispatch queue runs a block.
@MainActor private func nextTurn(after delay: DispatchTimeInterval) async {
  await withCheckedContinuation { continuation in
    DispatchQueue.main.asyncAfter(deadline: .now() + delay) { continuation.resume() }
  }
}
