// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
public import RunLoopCore
import RunLoopThreads

// Our loop inside Core Foundation's, for as long as somebody runs that one.
extension RunLoopCore.RunLoop {
  /// Serves this loop while code in the body runs the thread's run loop of Foundation.
  ///
  /// On the main thread any run of Foundation's loop serves this one, and the body is merely called. It is for other
  /// threads.
  ///
  /// Code that waits by a run of Foundation's loop does not serve ours meanwhile: `Process.waitUntilExit()`, the waits
  /// of XCTest, a library that spins `CFRunLoopRunInMode`. In the body this loop is a guest of that one, as with
  /// `RunLoop.Guest`: its timers, sources, blocks and messages are served in the same run, and neither loop polls.
  ///
  /// ```swift
  /// try RunLoop.current.servedByCoreFoundation { process.waitUntilExit() }
  /// ```
  ///
  /// - A service of this loop is a source to Core Foundation's, so that `run(mode:before:)` of Foundation's returns
  ///   after one, and the mode is not empty there.
  /// - `stop()` ends no run of Foundation's.
  /// - Both loops then drain the main dispatch queue: each block once, and all in order.
  ///
  /// The body may run this loop too, and be called in a call-out of either.
  ///
  /// - Parameters:
  ///   - mode: The mode that is served, while Foundation's loop runs in the mode of the same name.
  ///   - body: Runs Foundation's loop.
  /// - Returns: The body's result.
  /// - Throws: The body's error; before it is called, a `RunLoopError`: `hasHost` if this loop serves Core
  ///   Foundation's, which it can leave by ``stopServingCoreFoundation()``, `cannotBeHosted(_:)` if the system has no
  ///   descriptor left, `notAMode(_:)` for the common pseudo-mode, `loopHasEnded`, and `wrongThread(loop:caller:)` if
  ///   the calling thread is not the loop's.
  public func servedByCoreFoundation<Value>(mode: Mode = .default, _ body: () throws -> Value) throws -> Value {
    try checkOwnThread()
    if let service = mainService as? MainThreadService, service.isOn, !hasExplicitGuest {
      guard mode != .common else { throw RunLoopError.notAMode(mode) }
      guard !takesNoItems else { throw RunLoopError.loopHasEnded }
      // Whatever the body runs serves this loop by itself.
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

  /// Whether the calling thread's loop is a guest of Core Foundation's, so that nobody need serve that one.
  static var isServedByCoreFoundation: Bool { GuestDepth.ofCallingThread.value > 0 }
}

/// How many guests of Core Foundation's loop a thread has, one within the other.
private final class GuestDepth: @unchecked Sendable {
  // Sendable: it is the thread's own.
  var value = 0

  static var ofCallingThread: GuestDepth { RunLoopThreads.Thread.current.attachment { GuestDepth() } }
}

/// A loop of ours as a source of Core Foundation's.
///
/// It is the thread's own.
private final class CoreFoundationGuest {
  private let guest: RunLoopCore.RunLoop.Guest
  private var source: CFRunLoopSource?

  init(_ mode: RunLoopCore.RunLoop.Mode) throws(RunLoopError) {
    guest = try RunLoopCore.RunLoop.Guest(mode: mode, signalsDeadlines: true)
    var context = CFRunLoopSourceContext1()
    context.version = 1
    // Whoever ends the guest invalidates the source before this object is released.
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in CoreFoundationGuest.at(info)?.guest.descriptor ?? -1 }
    context.perform = { info in CoreFoundationGuest.at(info)?.guest.service() }
    source = context.makeSource()
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode.coreFoundationMode)
  }

  func end() {
    // Before the descriptor is closed.
    if let source { CFRunLoopSourceInvalidate(source) }
    guest.invalidate()
  }

  private static func at(_ info: UnsafeMutableRawPointer?) -> CoreFoundationGuest? {
    info.map { Unmanaged<CoreFoundationGuest>.fromOpaque($0).takeUnretainedValue() }
  }
}
