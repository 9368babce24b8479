// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import Glibc
import RunLoopCore
import RunLoopGLib
import RunLoopKit
import RunLoopThreads
import TestSupport
import XCTest

/// The possible first uses of a main loop in a process.
///
/// Each ends with a call on the main thread, except for those that only access a loop.
enum FirstUse: String, CaseIterable {
  case timer, source, descriptor, port, block, modeBlock, observer, handOff
  case mainQueue, mainActor
  case foundationTimer, foundationLoop
  case getMain, getCurrent, cfTimer, cfBlock
  case process
  case emptyRun

  /// Whether the use makes no call: it only creates a loop, or is complete when ``begin(_:)`` returns.
  var isOnlyTouch: Bool {
    switch self {
    case .foundationLoop, .getMain, .getCurrent, .process, .emptyRun: true
    default: false
    }
  }

  /// Uses a main loop on the calling thread, and calls `done` later on the main thread.
  func begin(_ done: @escaping @Sendable () -> Void) {
    switch self {
    case .timer:
      RunLoop.main.add(Timer(timeInterval: 0.001, repeats: false) { _ in done() }, forMode: .common)
    case .source:
      let source = RunLoop.Source { done() }
      RunLoop.main.add(source, forMode: .default)
      source.signal()
      RunLoop.main.wakeUp()
    case .descriptor:
      guard let pipe = try? RawPipe() else { fail("no pipe") }
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
        pipe.read()
        source.invalidate()
        done()
      }
      pipe.write()
      guard (try? RunLoop.main.add(source, forMode: .default)) != nil else { fail("the descriptor was rejected") }
    case .port:
      let port = Port { _, _ in done() }
      RunLoop.main.add(port, forMode: .default)
      do { try port.send(Port.Message()) } catch { fail("\(error)") }
    case .block: RunLoop.main.perform(done)
    case .modeBlock: RunLoop.main.perform(inModes: [.common], block: done)
    case .observer:
      // An observer does not keep a mode alive or cause a pass.
      let observer = RunLoop.Observer(activities: .beforeSources) { observer, _ in
        observer.invalidate()
        done()
      }
      RunLoop.main.add(observer, forMode: .default)
      RunLoop.main.wakeUp()
    case .handOff: do { try Thread.main.perform { done() } } catch { fail("\(error)") }
    case .mainQueue: DispatchQueue.main.async(execute: done)
    case .mainActor: Task { @MainActor in done() }
    case .foundationTimer:
      let timer = Foundation.Timer(timeInterval: 0.001, repeats: false) { _ in done() }
      Foundation.RunLoop.main.add(timer, forMode: .common)
    case .foundationLoop: _ = Foundation.RunLoop.main
    case .getMain: _ = CFRunLoopGetMain()
    case .getCurrent: _ = CFRunLoopGetCurrent()
    case .cfTimer:
      let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + 0.001, 0, 0, 0) { _ in done() }
      CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode)
    case .cfBlock:
      CFRunLoopPerformBlock(CFRunLoopGetMain(), kCFRunLoopDefaultMode) { done() }
      CFRunLoopWakeUp(CFRunLoopGetMain())
    case .process:
      let process = startedProcess("/bin/true")
      process.waitUntilExit()
    case .emptyRun:
      // A mode that neither loop knows. Another thread cannot run the main loop.
      guard RunLoop.isMainThread else { _ = RunLoop.main; return }
      guard RunLoop.main.run(mode: "emptyRun", for: .seconds(3600)) == .finished else { fail("the run was not empty") }
    }
  }
}

/// The ways in which the main thread runs one of its loops.
enum WayOfRunning: String, CaseIterable {
  case cfRun, cfRunInMode, cfLooks, foundationUntil, foundationMode, process, xctest
  case run, runMode, looks, runUntilStopped, mainLoop, guest, glib, dialogue

  /// The ways whose requirements this system meets.
  static var possible: [Self] {
    dlopen("libglib-2.0.so.0", RTLD_NOW) == nil ? allCases.filter { $0 != .glib && $0 != .dialogue } : allCases
  }

  /// The expectation that XCTest waits for.
  private static let done = XCTestExpectation(description: "each use was answered")

  /// Runs until `isDone` returns true.
  ///
  /// The last call must call ``end()``, as some runs do not end by themselves.
  func run(until isDone: @escaping @Sendable () -> Bool) {
    switch self {
    case .cfRun: while !isDone() { CFRunLoopRun() }
    case .cfRunInMode: while !isDone() { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 3600, false) }
    case .cfLooks: while !isDone() { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) }
    case .foundationUntil: while !isDone() { Foundation.RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01)) }
    case .foundationMode: while !isDone() { _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture) }
    case .process:
      let process = startedProcess("/bin/cat", until: isDone)
      process.waitUntilExit()
    case .xctest:
      guard !isDone() else { return }
      guard XCTWaiter.wait(for: [Self.done], timeout: 3600) == .completed else { fail("the wait has ended") }
    case .run: RunLoop.main.run()
    case .runMode: while !isDone() { RunLoop.main.run(mode: .default, for: .seconds(3600)) }
    case .looks: while !isDone() { RunLoop.main.run(mode: .default, before: .distantPast) }
    case .runUntilStopped: while !isDone() { RunLoop.main.runUntilStopped() }
    case .mainLoop:
      MainLoop.run {
        while !isDone() { try await Task.sleep(for: .milliseconds(1)) }
        succeed()
      }
    case .guest:
      guard let guest = try? RunLoop.Guest() else { fail("no guest") }
      while !isDone() {
        var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&entry, 1, guest.timeoutMilliseconds)
        guest.service()
      }
      guest.invalidate()
    case .glib:
      attachToGLib()
      while !isDone() { iterateGLib() }
    case .dialogue:
      attachToGLib()
      let isOver = Box(false)
      // Not in a block: blocks posted in the meantime may be in its batch, which nested runs do not see.
      let click = RunLoop.Source {
        while !isDone() { iterateGLib() }
        isOver.value = true
      }
      RunLoop.main.add(click, forMode: .default)
      click.signal()
      while !isOver.value { iterateGLib() }
    }
  }

  /// Ends the run; called on the main thread by the last call.
  func end() {
    switch self {
    case .cfRun, .cfRunInMode: CoreFoundation.CFRunLoopStop(CFRunLoopGetMain())
    case .runMode, .runUntilStopped: RunLoop.main.stop()
    // Timers, blocks and wake-ups do not end Foundation's run; only a stop ends a run without a limit.
    case .foundationMode: CoreFoundation.CFRunLoopStop(CFRunLoopGetMain())
    case .xctest: Self.done.fulfill()
    case .run: succeed()
    default: break
    }
  }
}

/// Uses the main loops in two ways, and runs one of them until both uses have made their calls.
///
/// - Parameter delay: Nil if the main thread makes both uses before the run. Otherwise another thread makes the
///   second use this many microseconds after the first.
func useFirst(_ first: FirstUse, _ second: FirstUse, _ way: WayOfRunning, delay: Int?) {
  let counts = Box([0, 0])
  let wanted = [first.isOnlyTouch ? 0 : 1, second.isOnlyTouch ? 0 : 1]
  let hasBegun = Box(delay == nil)
  let isDone: @Sendable () -> Bool = { counts.value == wanted && hasBegun.value }
  let note: @Sendable (Int) -> @Sendable () -> Void = { index in
    {
      guard RunLoop.isMainThread else { fail("a call on another thread") }
      counts.update { $0[index] += 1 }
      if isDone() { way.end() }
    }
  }
  // As a last resort, the alarm ends the process if a call is lost. A process started by one of Dispatch's threads
  // has all signals blocked.
  var none = sigset_t()
  sigemptyset(&none)
  pthread_sigmask(SIG_SETMASK, &none, nil)
  alarm(60)
  let thread = delay.map { delay in
    startThread {
      let end = Tick.monotonicNow + Int64(delay) * 1000
      while Tick.monotonicNow < end {}
      second.begin(note(1))
      // The run may have nothing else to wait for.
      DispatchQueue.main.async {
        hasBegun.value = true
        if isDone() { way.end() }
      }
    }
  }
  first.begin(note(0))
  if delay == nil {
    second.begin(note(1))
    if isDone() { DispatchQueue.main.async { way.end() } }
  }
  way.run(until: isDone)
  thread?.result()
  guard counts.value == wanted else { fail("\(counts.value) calls in place of \(wanted)") }
  succeed()
}

private func attachToGLib() {
  do { try GLibHost.attach() } catch { fail("\(error)") }
}

/// Waits in GLib's default context, and dispatches what is ready.
func iterateGLib() {
  typealias Iteration = @convention(c) (UnsafeMutableRawPointer?, Int32) -> Int32
  guard let library = dlopen("libglib-2.0.so.0", RTLD_NOW), let found = dlsym(library, "g_main_context_iteration")
  else { fail("no GLib") }
  _ = unsafeBitCast(found, to: Iteration.self)(nil, 1)
}

func succeed() -> Never {
  say("ok")
  // Skips the process's destructors, as other threads may still run.
  _exit(0)
}

func fail(_ text: String) -> Never {
  say(text)
  _exit(9)
}

/// Starts a program.
///
/// If it reads its input, it ends when `isDone` returns true.
private func startedProcess(_ path: String, until isDone: (@Sendable () -> Bool)? = nil) -> Process {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: path)
  let input = Pipe()
  if isDone != nil { process.standardInput = input }
  do { try process.run() } catch { fail("\(error)") }
  if let isDone {
    Foundation.Thread.detachNewThread {
      while !isDone() { usleep(200) }
      input.fileHandleForWriting.closeFile()
    }
  }
  return process
}
