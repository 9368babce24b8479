// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

// How the two main loops discover each other.

/// Creates the service of a loop that may become the main one.
///
/// The service does nothing until the loop is known.
@_cdecl("rlk_main_loop_is_made")
func mainLoopIsMade(_ pointer: UnsafeMutableRawPointer) {
  // In a forked child, Core Foundation's loops are still the parent's.
  guard !ForkGeneration.isForkedChild else { return }
  Unmanaged<RunLoopCore.RunLoop>.fromOpaque(pointer).takeUnretainedValue().mainService = MainThreadService()
}

/// Starts the service of the main loop, which other threads may already be using.
@_cdecl("rlk_main_loop_is_known")
func mainLoopIsKnown(_ pointer: UnsafeMutableRawPointer) {
  let loop = Unmanaged<RunLoopCore.RunLoop>.fromOpaque(pointer).takeUnretainedValue()
  guard let service = loop.mainService as? MainThreadService else { return }
  Discovery.watch()
  service.findLoop(making: true)
  if let runLoop = service.runLoop { service.attach(to: runLoop, loop) }
}

/// Detects that Foundation creates its object for the main loop.
enum Discovery {
  private typealias Maker = @convention(c) (CFRunLoop) -> Unmanaged<AnyObject>

  // Written once, before Core Foundation can call the function that reads it.
  nonisolated(unsafe) private static var maker: Maker?

  private static let isWatching: Void = {
    // Core Foundation calls this function to create Foundation's object for one of its loops on first use. It holds a
    // lock meanwhile, so the function must not request a loop from Core Foundation.
    maker = __CFSwiftBridge.NSRunLoop._new
    // Core Foundation reads the function without ordering: a thread that calls it must also see what it reads.
    atomicMemoryFence(ordering: .releasing)
    __CFSwiftBridge.NSRunLoop._new = { runLoop in
      atomicMemoryFence(ordering: .acquiring)
      if rlk_is_main_loop(Unmanaged.passUnretained(runLoop).toOpaque()) != 0 { Discovery.found(runLoop) }
      guard let maker = Discovery.maker else { preconditionFailure("Foundation makes no run loops") }
      return maker(runLoop)
    }
  }()

  static func watch() { isWatching }

  private static func found(_ runLoop: CFRunLoop) {
    // A loop is not created here, because that would request Core Foundation's loop while its lock is held.
    guard let loop = RunLoopCore.RunLoop.mainIfMade, let service = loop.mainService as? MainThreadService else {
      return
    }
    service.noteUse(of: runLoop)
    if service.isOn { service.attach(to: runLoop, loop) }
    // The loop may be sleeping by itself, and must now wait in the other loop.
    if RunLoopCore.RunLoop.currentIfMade !== loop { loop.wakeUp() }
  }
}

/// Creates the service of another thread's loop if that thread has a Core Foundation loop.
@_cdecl("rlk_thread_has_other_loop")
func threadHasOtherLoop(_ pointer: UnsafeMutableRawPointer) {
  // In a forked child, Foundation's loop and its items are still the parent's.
  guard !ForkGeneration.isForkedChild, let made = rlk_current_loop_if_made() else { return }
  let loop = Unmanaged<RunLoopCore.RunLoop>.fromOpaque(pointer).takeUnretainedValue()
  loop.threadService = ThreadService(Unmanaged<CFRunLoop>.fromOpaque(made).takeUnretainedValue())
}
