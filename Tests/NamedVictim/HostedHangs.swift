// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopGLib
import RunLoopInstruments
import RunLoopKit

import class RunLoopCore.RunLoop
import func TestSupport.ready
import func TestSupport.say

/// Loops that wait in Core Foundation's, whose items hang for 1.5 s once the process is watched.
///
///   timer    a Foundation timer, while our main loop runs
///   perform  a block of Foundation's main loop, while our main loop runs
///   queue    a block of the main dispatch queue, while our main loop runs
///   served   a Foundation timer, while Core Foundation's main loop runs and serves ours
///   nested   a Foundation timer that has run our main loop before
///   thread   a Foundation timer of another thread, while that thread's loop runs
///   watched  as timer, in a process that watches itself, and says what it finds
///   glib, glib-served  a timeout of GLib, whose loop runs on the main thread and serves ours, which is idle or not
///   glib-idle, glib-busy  no item hangs, and GLib's loop sleeps or has an idle source that is always ready
///   idle     no item hangs, and both loops sleep
///   busy     no item hangs, and Core Foundation's main loop never sleeps
enum HostedHangs {
  private static let time: UInt32 = 1_500_000
  nonisolated(unsafe) private static var hasHung = false
  nonisolated(unsafe) private static var turns = 0

  static func run(_ how: String) {
    // Only a loop that exists is served.
    RunLoop.main.schedule(in: .seconds(3600)) { _ in }
    Foundation.RunLoop.main.add(Foundation.Timer(timeInterval: 3600, repeats: true) { _ in }, forMode: .default)
    switch how {
    case "timer", "served": addTimer { hangInFoundationTimer() }
    case "nested":
      addTimer {
        RunLoop.current.run(mode: .default, for: .milliseconds(10))
        hangInFoundationTimer()
      }
    case "perform":
      addTimer { Foundation.RunLoop.main.perform { hangInFoundationBlock() } }
    case "queue": addTimer { DispatchQueue.main.async { hangInDispatchBlock() } }
    case "thread":
      Foundation.Thread.detachNewThread {
        addTimer { hangInFoundationTimer() }
        RunLoop.current.run()
      }
    case "watched": watchItself()
    case "busy": beBusy()
    case _ where how.hasPrefix("glib"): return runInGLib(how)
    default: break
    }
    ready()
    if how == "served" { CFRunLoopRun() } else { RunLoop.main.run() }
  }

  /// Adds a timer to the Foundation loop of the calling thread that calls a body once, when the process is watched.
  private static func addTimer(_ body: @escaping @Sendable () -> Void) {
    _ = Foundation.Timer.scheduledTimer(withTimeInterval: 0.05, repeats: true) { _ in
      hangOnce(body)
    }
  }

  private static func hangOnce(_ body: () -> Void) {
    guard !hasHung, Instruments.level >= .record else { return }
    // The first turns may be unseen.
    turns += 1
    guard turns > 10 else { return }
    hasHung = true
    body()
  }

  private static func runInGLib(_ how: String) {
    typealias Callback = @convention(c) (UnsafeMutableRawPointer?) -> Int32
    func function<Function>(_ name: String, _: Function.Type = Function.self) -> Function {
      guard let found = dlsym(UnsafeMutableRawPointer(bitPattern: 0), name) else { fatalError("GLib has no \(name)") }
      return unsafeBitCast(found, to: Function.self)
    }
    guard dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_GLOBAL) != nil else { fatalError("no GLib") }
    let timeout: @convention(c) (UInt32, Callback, UnsafeMutableRawPointer?) -> UInt32 = function("g_timeout_add")
    let idle: @convention(c) (Callback, UnsafeMutableRawPointer?) -> UInt32 = function("g_idle_add")
    let makeLoop: @convention(c) (UnsafeMutableRawPointer?, Int32) -> OpaquePointer? = function("g_main_loop_new")
    let runLoop: @convention(c) (OpaquePointer?) -> Void = function("g_main_loop_run")
    do { try GLibHost.attach() } catch { fatalError("\(error)") }
    switch how {
    case "glib-idle": break
    case "glib-busy":
      let work: Callback = { _ in
        usleep(5000)
        return 1
      }
      _ = idle(work, nil)
    default:
      if how == "glib-served" { RunLoop.main.schedule(in: .milliseconds(20), repeating: .milliseconds(20)) { _ in } }
      let hang: Callback = { _ in
        HostedHangs.hangOnce { HostedHangs.hangInTimeout() }
        return 1
      }
      _ = timeout(50, hang, nil)
    }
    ready()
    runLoop(makeLoop(nil, 0))
  }

  @inline(never) private static func hangInTimeout() {
    usleep(time)
    turns += 1
  }

  @inline(never) private static func hangInFoundationTimer() {
    usleep(time)
    turns += 1
  }

  @inline(never) private static func hangInFoundationBlock() {
    usleep(time)
    turns += 1
  }

  @inline(never) private static func hangInDispatchBlock() {
    usleep(time)
    turns += 1
  }

  private static func watchItself() {
    let watch = HangWatch { report in
      say("\(report.end == nil ? "began" : "ended") \(report.threadName) \(report.kind ?? "?")")
    }
    _ = Foundation.Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in
      hangInFoundationTimer()
      _ = Foundation.Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in
        say("hangs \(Instruments.metrics(of: RunLoop.main)?.hangs ?? 0)")
        withExtendedLifetime(watch) {}
      }
    }
  }

  /// Keeps a source of Core Foundation's main loop signalled, so that the loop never sleeps.
  private static func beBusy() {
    var context = CFRunLoopSourceContext()
    context.perform = { _ in
      usleep(5000)
      CFRunLoopSourceSignal(HostedHangs.source)
    }
    source = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(CFRunLoopGetMain(), source, kCFRunLoopDefaultMode)
    CFRunLoopSourceSignal(source)
  }

  nonisolated(unsafe) private static var source: CFRunLoopSource?
}
