// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
@testable import RunLoopKit
import TestSupport

/// A thread whose loop serves Core Foundation's, with a log of the call-outs.
final class HostedRig: @unchecked Sendable {
  // Sendable: Core Foundation's functions can be called on any thread.
  let loop: RunLoop
  let cf: CFRunLoop
  private let log = Log()
  private let threads = Box<[StartedThread<Void>]>([])

  fileprivate init(_ loop: RunLoop) {
    self.loop = loop
    cf = CFRunLoopGetCurrent()
  }

  func write(_ entry: String) { log.write(entry) }

  var text: String { log.text }

  /// Runs a mode, by default without a limit, and logs the result.
  func run(
    _ mode: RunLoop.Mode = .default, for timeout: Duration = .unlimited, returnAfterSourceHandled: Bool = false
  ) {
    write("\(loop.run(mode: mode, for: timeout, returnAfterSourceHandled: returnAfterSourceHandled))")
  }

  /// Adds an observer of all stages that logs them.
  func observe(_ mode: RunLoop.Mode = .default) { loop.observe(log, mode: mode) }

  /// Adds a source that is never signaled.
  @discardableResult
  func keepAlive(_ mode: RunLoop.Mode = .default) -> RunLoop.Source { loop.keepAlive(mode) }

  /// Runs a body on another thread once the loop waits.
  func whenAsleep(_ body: @escaping @Sendable (HostedRig) -> Void) {
    detach {
      waitUntil { self.loop.isWaiting && CFRunLoopIsWaiting(self.cf) }
      body(self)
    }
  }

  func detach(_ body: @escaping @Sendable () -> Void) {
    threads.update { $0.append(startThread(body)) }
  }

  fileprivate func joinThreads() {
    for thread in threads.value { thread.result() }
  }
}

/// Runs a body on a new thread whose loop serves Core Foundation's, and returns the log once the thread has ended.
func hosted(_ body: @escaping @Sendable (HostedRig) throws -> Void) -> String {
  onNewThread {
    let rig = HostedRig(.current)
    do {
      try rig.loop.serveCoreFoundation()
      try body(rig)
    } catch {
      rig.write("\(error)")
    }
    rig.joinThreads()
    return rig.text
  }
}

/// Runs a body on the calling thread, whose loop must not be serving Core Foundation's yet, and returns the log.
func hostedHere(_ body: (HostedRig) throws -> Void) -> String {
  let rig = HostedRig(.current)
  do {
    try rig.loop.serveCoreFoundation()
    try body(rig)
  } catch {
    rig.write("\(error)")
  }
  rig.loop.stopServingCoreFoundation()
  serveWithoutACallAgain()
  rig.joinThreads()
  return rig.text
}

/// Lets the main loops serve each other again, after a test that ended this.
func serveWithoutACallAgain() { RunLoop.main.mainService?.turn(on: true) }

final class CFSource: @unchecked Sendable {
  // Sendable: Core Foundation's functions can be called on any thread, and the body is Sendable.
  private let body: @Sendable () -> Void
  private(set) var source: CFRunLoopSource!
  private let descriptor: Int32

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    descriptor = -1
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in CFSource.at(info).body() }
    source = CFRunLoopSourceCreate(nil, 0, &context)
  }

  /// Creates a version 1 source; Core Foundation reads eight bytes from its descriptor before it performs.
  init(_ descriptor: Int32, _ body: @escaping @Sendable () -> Void) {
    self.body = body
    self.descriptor = descriptor
    var context = CFRunLoopSourceContext1()
    context.version = 1
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.getPort = { info in CFSource.at(info).descriptor }
    context.perform = { info in CFSource.at(info).body() }
    source = withUnsafeMutablePointer(to: &context) { context in
      context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) { CFRunLoopSourceCreate(nil, 0, $0) }
    }
  }

  func add(to rig: HostedRig, _ mode: RunLoop.Mode = .default) { CFRunLoopAddSource(rig.cf, source, cfMode(mode)) }
  func remove(from rig: HostedRig) { CFRunLoopRemoveSource(rig.cf, source, cfMode(.default)) }
  func invalidate() { CFRunLoopSourceInvalidate(source) }

  /// Signals the source and wakes the loop, which is a separate call.
  func signal(_ rig: HostedRig) {
    CFRunLoopSourceSignal(source)
    CFRunLoopWakeUp(rig.cf)
  }

  private static func at(_ info: UnsafeMutableRawPointer?) -> CFSource {
    guard let info else { preconditionFailure("a source without its object") }
    return Unmanaged<CFSource>.fromOpaque(info).takeUnretainedValue()
  }
}

func cfMode(_ mode: RunLoop.Mode) -> CFRunLoopMode {
  switch mode {
  case .default: kCFRunLoopDefaultMode
  case .common: kCFRunLoopCommonModes
  default: mode.rawValue.withCString { CFStringCreateWithCString(nil, $0, CFStringBuiltInEncodings.UTF8.rawValue) }
  }
}

/// Adds a Foundation timer to the calling thread's Foundation loop.
@discardableResult
func foundationTimer(
  after seconds: Double, mode: Foundation.RunLoop.Mode = .default,
  _ body: @escaping @Sendable (Foundation.Timer) -> Void
) -> Foundation.Timer {
  let timer = Foundation.Timer(fire: Date(timeIntervalSinceNow: seconds), interval: 0, repeats: false, block: body)
  Foundation.RunLoop.current.add(timer, forMode: mode)
  return timer
}
