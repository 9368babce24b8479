// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CoreFoundation
import RunLoopCore
import Synchronization

// How the two main loops learn of each other.

/// Gives a loop that may become the main one its service, which does nothing until the loop is known.
@_cdecl("rlk_main_loop_is_made")
func mainLoopIsMade(_ pointer: UnsafeMutableRawPointer) {
  // In a forked child Core Foundation's loops are the parent's.
  guard !ForkGeneration.isForkedChild else { return }
  Unmanaged<RunLoopCore.RunLoop>.fromOpaque(pointer).takeUnretainedValue().mainService = MainThreadService()
}

/// Begins the service of the main loop, which other threads may be using already.
@_cdecl("rlk_main_loop_is_known")
func mainLoopIsKnown(_ pointer: UnsafeMutableRawPointer) {
  let loop = Unmanaged<RunLoopCore.RunLoop>.fromOpaque(pointer).takeUnretainedValue()
  guard let service = loop.mainService as? MainThreadService else { return }
  Discovery.watch()
  service.findLoop(making: true)
  if let runLoop = service.runLoop { service.attach(to: runLoop, loop) }
}

/// Notices that Foundation makes its object for the main loop.
enum Discovery {
  private typealias Maker = @convention(c) (CFRunLoop) -> Unmanaged<AnyObject>

  // Written once, before Core Foundation can call the function that reads it.
  nonisolated(unsafe) private static var maker: Maker?

  private static let isWatching: Void = {
    // Core Foundation asks Foundation, by this function, for the object of each of its loops when one is first asked
    // for. It holds a lock of its own meanwhile, under which it must not be asked for a loop.
    maker = __CFSwiftBridge.NSRunLoop._new
    __CFSwiftBridge.NSRunLoop._new = { runLoop in
      if rlk_is_main_loop(Unmanaged.passUnretained(runLoop).toOpaque()) != 0 { Discovery.found(runLoop) }
      guard let maker = Discovery.maker else { preconditionFailure("Foundation makes no run loops") }
      return maker(runLoop)
    }
  }()

  static func watch() { isWatching }

  private static func found(_ runLoop: CFRunLoop) {
    // A loop is not made here: that would ask Core Foundation for its loop, under its lock.
    guard let loop = RunLoopCore.RunLoop.mainIfMade, let service = loop.mainService as? MainThreadService else {
      return
    }
    service.noteUse(of: runLoop)
    if service.isOn { service.attach(to: runLoop, loop) }
    // It may sleep by itself, and is to wait in the other from now on.
    if RunLoopCore.RunLoop.currentIfMade !== loop { loop.wakeUp() }
  }
}

/// Gives a loop of another thread than the main one its service, since that thread has a loop of Core Foundation's.
@_cdecl("rlk_thread_has_other_loop")
func threadHasOtherLoop(_ pointer: UnsafeMutableRawPointer) {
  // In a forked child Foundation's loop is the parent's, and what is in it too.
  guard !ForkGeneration.isForkedChild, let made = rlk_current_loop_if_made() else { return }
  let loop = Unmanaged<RunLoopCore.RunLoop>.fromOpaque(pointer).takeUnretainedValue()
  loop.threadService = ThreadService(Unmanaged<CFRunLoop>.fromOpaque(made).takeUnretainedValue())
}
