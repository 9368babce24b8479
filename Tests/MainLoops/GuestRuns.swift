// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CoreFoundation
import Dispatch
import Foundation
import Glibc
import RunLoopCore
import RunLoopGLib
import RunLoopKit
import RunLoopThreads
import TestSupport

/// The loop whose guest the main loop is.
enum Embedding: String {
  /// A loop around `poll`.
  case poll
  case glib

  /// The kind of host that the instruments report.
  var host: crl_host { self == .glib ? CRL_HOST_GLIB : CRL_HOST_PROGRAM }

  /// Makes the main loop a guest, runs the host until the body's call-out has returned and a condition holds, and ends
  /// the guest.
  func run(until isTrue: () -> Bool = { true }, _ body: @escaping @Sendable () -> Void) {
    switch self {
    case .poll:
      guard let guest = try? RunLoop.Guest() else { fail("no guest") }
      serve(guest, until: isTrue, body)
      guest.invalidate()
    case .glib:
      guard let host = try? GLibHost.attach() else { fail("not attached") }
      runAndWait(until: isTrue, body) { iterateGLib() }
      host.detach()
    }
  }

  private func serve(_ guest: RunLoop.Guest, until isTrue: () -> Bool, _ body: @escaping @Sendable () -> Void) {
    runAndWait(until: isTrue, body) {
      var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
      Glibc.poll(&entry, 1, guest.timeoutMilliseconds)
      guest.service()
    }
  }
}

/// Calls a body in the main loop, and runs a host by turns until the body has returned and the loop is served again.
private func runAndWait(until isTrue: () -> Bool, _ body: @escaping @Sendable () -> Void, turn: () -> Void) {
  let isOver = Box(false)
  RunLoop.main.after(.milliseconds(1)) { _ in
    body()
    RunLoop.main.after(.milliseconds(1)) { _ in isOver.value = true }
  }
  while !isOver.value || !isTrue() { turn() }
}

/// Waits in the ways that Foundation offers, in a call-out of the loop and in one of the host; both serve the loop.
func waitAsGuest(_ embedding: Embedding) {
  alarm(60)
  embedding.run {
    say("in a call-out: \(servedByProcess())")
    say("in a run: \(servedByRun()), \(RunLoop.main.faceReading.host == embedding.host ? "then" : "not") as before")
  }
  // In the host's call-outs, between two services.
  switch embedding {
  case .poll:
    guard let guest = try? RunLoop.Guest() else { fail("no guest") }
    guest.service()
    say("between services: \(servedByProcess())")
    guest.service()
    say("then waiting \(RunLoop.main.isWaiting)")
    guest.invalidate()
  case .glib:
    guard let host = try? GLibHost.attach() else { fail("not attached") }
    iterateGLib()
    say("between services: \(servedByProcess())")
    iterateGLib()
    say("then waiting \(RunLoop.main.isWaiting)")
    host.detach()
  }
  say("afterwards: \(servedByProcess())")
  nestAsGuest(embedding)
  pollAsGuest(embedding)
  exit(0)
}

/// Polls Foundation's loop while another thread signals a source of it, which Core Foundation does not notice then.
private func pollAsGuest(_ embedding: Embedding) {
  let isPerformed = Box(false)
  var context = CFRunLoopSourceContext()
  context.info = Unmanaged.passRetained(isPerformed).toOpaque()
  context.perform = { info in
    if let info { Unmanaged<Box<Bool>>.fromOpaque(info).takeUnretainedValue().value = true }
  }
  // Core Foundation's functions are thread-safe.
  nonisolated(unsafe) let source = CFRunLoopSourceCreate(nil, 0, &context)
  CFRunLoopAddSource(CFRunLoopGetMain(), source, kCFRunLoopDefaultMode)
  embedding.run(until: { isPerformed.value }) {
    let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
      startThread {
        CFRunLoopSourceSignal(source)
        CFRunLoopWakeUp(CFRunLoopGetMain())
      }.result()
    }
    CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode)
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
  }
  say("performed")
}

/// Waits for a child process that ends after a worker's calls of the main thread, and returns what was called.
private func servedByProcess() -> String {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/cat")
  let input = Pipe()
  process.standardInput = input
  do { try process.run() } catch { fail("\(error)") }
  let log = Log()
  let timer = Timer(timeInterval: 0.001, repeats: true) { timer in
    log.write("timer")
    timer.invalidate()
  }
  RunLoop.main.add(timer, forMode: .common)
  let worker = startThread {
    waitUntil { !timer.isValid }
    do { try Thread.main.performAndWait { log.write("hand-off") } } catch { fail("\(error)") }
    DispatchQueue.main.sync { log.write("queue") }
    input.fileHandleForWriting.closeFile()
  }
  process.waitUntilExit()
  worker.result()
  return log.text
}

/// Runs Foundation's loop in a mode, and stops our loop in it, which does not end the run.
private func servedByRun() -> String {
  let log = Log()
  RunLoop.main.perform(inModes: ["other"]) {
    log.write(RunLoop.main.currentMode == "other" ? "other" : "?")
    log.write(RunLoop.main.faceReading.host == CRL_HOST_CORE_FOUNDATION ? "hosted" : "?")
    RunLoop.main.stop()
  }
  let timer = Timer(timeInterval: 0.001, repeats: false) { _ in
    log.write("timer")
    CoreFoundation.CFRunLoopStop(CFRunLoopGetMain())
  }
  RunLoop.main.add(timer, forMode: "other")
  RunLoop.main.perform(inModes: [.default]) { log.write("default") }
  let mode = CFStringCreateWithCString(nil, "other", 0x0600)
  log.write(CFRunLoopRunInMode(mode, 60, false) == .stopped ? "stopped" : "not stopped")
  return log.text
}

/// Nests runs of both loops, and another guest, in a run that a guest's call-out has started.
private func nestAsGuest(_ embedding: Embedding) {
  let log = Log()
  embedding.run {
    RunLoop.main.after(.milliseconds(1)) { _ in
      log.write("[")
      // A timer of the other loop, during a run of ours.
      let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + 0.001, 0, 0, 0) { _ in
        log.write("theirs")
        RunLoop.main.stop()
      }
      CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode)
      log.write("\(RunLoop.main.runUntilStopped())")
      log.write("(")
      log.write(servedByProcess())
      log.write(")")
      nestGuest(log)
      RunLoop.main.after(.milliseconds(1)) { _ in
        log.write("]")
        CoreFoundation.CFRunLoopStop(CFRunLoopGetMain())
      }
    }
    log.write(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == .stopped ? "stopped" : "not stopped")
  }
  say("nested: \(log.text)")
}

/// Serves both loops in a guest of its own.
private func nestGuest(_ log: Log) {
  guard let guest = try? RunLoop.Guest() else { fail("no guest") }
  let isOver = Box(false)
  let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + 0.001, 0, 0, 0) { _ in
    log.write("guest")
    isOver.value = true
  }
  CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode)
  while !isOver.value {
    var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
    poll(&entry, 1, guest.timeoutMilliseconds)
    guest.service()
  }
  guest.invalidate()
}
