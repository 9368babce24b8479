// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
public import RunLoopCore
import RunLoopThreads

// Our loop as a guest in Core Foundation's, while something runs that one.
extension RunLoopCore.RunLoop {
  /// Serves this loop while a closure runs the Foundation run loop of the thread.
  ///
  /// On the main thread, any run of Foundation's loop serves this one, and the closure is simply called. This method
  /// is intended for other threads.
  ///
  /// Code that waits by running Foundation's loop does not serve ours meanwhile, such as `Process.waitUntilExit()`,
  /// the waits of XCTest, or a library that calls `CFRunLoopRunInMode` in a loop. Within the closure, this loop is a
  /// guest of Foundation's, as with `RunLoop.Guest`: its timers, sources, blocks and messages are served in the same
  /// run, and neither loop polls.
  ///
  /// ```swift
  /// try RunLoop.current.servedByCoreFoundation { process.waitUntilExit() }
  /// ```
  ///
  /// - For Foundation, serving this loop counts as handling a source: `run(mode:before:)` returns afterwards, and the
  ///   mode is not empty.
  /// - `stop()` does not end a run of Foundation's loop.
  /// - Both loops drain the main dispatch queue meanwhile. Each block runs once, and all blocks run in order.
  ///
  /// The closure may also run this loop, and may be called in a call-out of either loop.
  ///
  /// - Parameters:
  ///   - mode: The mode that is served while Foundation's loop runs in the mode of the same name.
  ///   - body: A closure that runs Foundation's loop.
  /// - Returns: The closure's result.
  /// - Throws: The closure's error. Before the closure is called, a `RunLoopError`: `hasHost` if this loop serves Core
  ///   Foundation's, which ``stopServingCoreFoundation()`` ends, `cannotBeHosted(_:)` if the system has no descriptors
  ///   left, `notAMode(_:)` for the common pseudo-mode, `loopHasEnded`, or `wrongThread(loop:caller:)` on another
  ///   thread.
  public func servedByCoreFoundation<Value>(mode: Mode = .default, _ body: () throws -> Value) throws -> Value {
    try checkOwnThread()
    if let service = mainService as? MainThreadService, service.isOn {
      guard mode != .common else { throw RunLoopError.notAMode(mode) }
      guard !takesNoItems else { throw RunLoopError.loopHasEnded }
      // Any run that the closure starts serves this loop automatically.
      let runLoop: CFRunLoop = CFRunLoopGetCurrent()
      service.attach(to: runLoop, self)
      service.serve(mode, of: runLoop)
      return try body()
    }
    let guest = try CoreFoundationGuest(mode)
    let depth = GuestDepth.ofCallingThread
    depth.value += 1
    defer {
      depth.value -= 1
      guest.end()
    }
    return try body()
  }

  /// Whether the calling thread's loop is a guest of Core Foundation's, which then need not be served.
  static var isServedByCoreFoundation: Bool { GuestDepth.ofCallingThread.value > 0 }
}

/// The number of nested guests that a thread has in Core Foundation's loop.
private final class GuestDepth: @unchecked Sendable {
  // Sendable: only the thread itself uses it.
  var value = 0

  static var ofCallingThread: GuestDepth { RunLoopThreads.Thread.current.attachment { GuestDepth() } }
}

/// One of our loops as a source of Core Foundation's, used only on the loop's thread.
private final class CoreFoundationGuest {
  private let guest: RunLoopCore.RunLoop.Guest
  private var source: CFRunLoopSource?

  init(_ mode: RunLoopCore.RunLoop.Mode) throws(RunLoopError) {
    guest = try RunLoopCore.RunLoop.Guest(mode: mode, signalsDeadlines: true)
    var context = CFRunLoopSourceContext1()
    context.version = 1
    // The source is invalidated before this object is released.
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in CoreFoundationGuest.at(info)?.guest.descriptor ?? -1 }
    context.perform = { info in CoreFoundationGuest.at(info)?.guest.service() }
    source = context.makeSource()
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode.coreFoundationMode)
  }

  func end() {
    // The source must be invalidated before the descriptor is closed.
    if let source { CFRunLoopSourceInvalidate(source) }
    guest.invalidate()
  }

  private static func at(_ info: UnsafeMutableRawPointer?) -> CoreFoundationGuest? {
    info.map { Unmanaged<CoreFoundationGuest>.fromOpaque($0).takeUnretainedValue() }
  }
}
