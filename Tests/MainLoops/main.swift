// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import TestSupport

// Tests how our main loop and Core Foundation's interact in a process that has not created either before. Prints the
// observations, and exits with status 0.
//
//   main-loops virtual | forked | alone | late | elsewhere | lacking | stopped | empty
//   main-loops waits poll | glib
//   main-loops first USE USE WAY [DELAY] | names
//
// virtual: the main thread's loop uses virtual time. forked: a child of a process in which the loops serve each
// other. alone: no other code uses Core Foundation's main loop. late: it is used after many passes. elsewhere:
// another thread adds a timer to it through Core Foundation while ours sleeps. lacking: the process has no descriptor
// for it at first. stopped: it is created by the argument of the call that stops it. empty: it is woken, with ours as
// its guest, while it has nothing in the mode. waits: ours is a guest of a third loop, and the main thread runs Core
// Foundation's; see `GuestRuns.swift`. first: see `FirstUses.swift`.

typealias RunLoop = RunLoopCore.RunLoop
typealias Timer = RunLoopCore.Timer

switch CommandLine.arguments.dropFirst().first {
case "virtual": onVirtualMainLoop()
case "forked": inForkedProcess()
case "alone": withoutCoreFoundation()
case "late": withLateCoreFoundation()
case "elsewhere": withCoreFoundationElsewhere()
case "lacking": withoutDescriptors()
case "stopped": stoppedByCoreFoundation()
case "empty": emptyBesideGuest()
case "waits":
  guard let embedding = CommandLine.arguments.dropFirst(2).first.flatMap(Embedding.init) else {
    fatalError("usage: main-loops waits poll | glib")
  }
  waitAsGuest(embedding)
case "first":
  let arguments = CommandLine.arguments.dropFirst(2).map { $0 }
  guard arguments.count >= 3, let first = FirstUse(rawValue: arguments[0]),
    let way = WayOfRunning(rawValue: arguments[2]),
    let second = FirstUse(rawValue: arguments[1])
  else { fatalError("usage: main-loops first USE USE WAY [DELAY]") }
  useFirst(first, second, way, delay: arguments.dropFirst(3).first.flatMap { Int($0) })
case "names":
  say(FirstUse.allCases.map(\.rawValue).joined(separator: " "))
  say(WayOfRunning.possible.map(\.rawValue).joined(separator: " "))
default:
  fatalError(
    "usage: main-loops virtual | forked | alone | late | elsewhere | lacking | stopped | empty | waits … | first …")
}

func say(_ text: String) {
  print(text)
  fflush(nil)
}

func onVirtualMainLoop() {
  let time = SteppedTime()
  let loop = time.makeLoop()
  // The process's main loop, which the main thread does not run, and Core Foundation's.
  RunLoop.main.add(RunLoop.Source {}, forMode: .default)
  let cf: CFRunLoop = CFRunLoopGetMain()
  let fired = Box<[String]>([])
  let theirs = Foundation.Timer(timeInterval: 0.001, repeats: false) { _ in fired.value.append("theirs") }
  Foundation.RunLoop.main.add(theirs, forMode: .default)
  // Our loop, beyond the date of Core Foundation's timer.
  loop.after(.seconds(3600)) { _ in
    usleep(20_000)
    fired.value.append("ours")
  }
  say("serves \(loop.isServingCoreFoundation)")
  say("run \(loop.run(mode: .default, for: .seconds(7200))): \(fired.value)")
  fired.value = []
  loop.after(.zero) { _ in fired.value.append("ours") }
  let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false)
  say("their run \(result == .timedOut ? "timedOut" : "\(result.rawValue)"): \(fired.value)")
  say("waiting \(CFRunLoopIsWaiting(cf))")
  say("after it \(loop.run(mode: .default, for: .seconds(1))): \(fired.value)")
  do { try loop.serveCoreFoundation() } catch { say("\(error)") }
}

func inForkedProcess() {
  let loop = RunLoop.main
  let keeper = loop.keepAlive()
  let theirs = Counter()
  let timer = Foundation.Timer(timeInterval: 0.001, repeats: true) { _ in theirs.add() }
  Foundation.RunLoop.main.add(timer, forMode: .default)
  while theirs.value == 0 { loop.run(mode: .default, for: .milliseconds(1)) }
  timer.invalidate()
  say("served \(loop.isServingCoreFoundation)")
  // From here on only the child works, and the parent's loop must not notice.
  let log = Log()
  loop.observe(log)
  let child = forkProcess()
  if child == 0 { inChild(of: loop) }
  let thread = startThread {
    let end = ForkedEnd(waitingFor: child)
    RunLoop.main.perform {
      log.write("\(end)")
      RunLoop.main.stop()
    }
  }
  let result = loop.runUntilStopped()
  thread.result()
  say("parent \(result): \(log.text)")
  keeper.invalidate()
}

func inChild(of parents: RunLoop) -> Never {
  let loop = RunLoop.main
  guard loop !== parents, RunLoop.current === loop else { _exit(2) }
  guard !loop.isServingCoreFoundation, loop.foundationRunLoop == nil else { _exit(3) }
  guard let pipe = try? RawPipe(), let complaint = try? RawPipe() else { _exit(4) }
  dup2(complaint.writing, 2)
  let log = Log()
  let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
    pipe.read()
    log.write("D")
    // The child's own wake-ups, in any number.
    for _ in 0..<100 { loop.wakeUp() }
    loop.after(.milliseconds(1)) { _ in
      log.write("T")
      CFRunLoopStop(CFRunLoopGetMain())
      loop.stop()
    }
  }
  guard (try? loop.add(source, forMode: .default)) != nil else { _exit(5) }
  let writer = startThread {
    waitUntil { loop.isWaiting }
    pipe.write()
  }
  guard loop.runUntilStopped() == .stopped, log.text == "D T" else { _exit(6) }
  writer.result()
  _exit(diagnostics(complaint.read(10_000)).isEmpty ? 0 : 7)
}

func withoutCoreFoundation() {
  let before = DescriptorCensus()
  let threads = System.threadCount
  let loop = RunLoop.main
  let fired = Counter()
  loop.every(.milliseconds(1)) { timer in
    fired.add()
    loop.perform { fired.add() }
    if fired.value >= 20 {
      timer.invalidate()
      loop.stop()
    }
  }
  say("\(loop.runUntilStopped())")
  say("serves \(loop.isServingCoreFoundation)")
  // Every main thread's loop waits for the main dispatch queue's event descriptor and its own, in an epoll set. Core
  // Foundation's loop has an event descriptor, an epoll set and a timer. Running it would open more.
  let alone = DescriptorCensus()
  let own = ["anon_inode:[eventfd]": 3, "anon_inode:[eventpoll]": 2, "anon_inode:[timerfd]": 1]
  say("descriptors \(before.isFollowed(by: alone, with: own) ? "its own" : "\(before), then \(alone)")")
  say("threads \(System.threadCount - threads)")
  // A use of Core Foundation's loop makes our loop wait in it.
  _ = Foundation.RunLoop.main
  loop.after(.milliseconds(1)) { _ in loop.stop() }
  say("\(loop.runUntilStopped())")
  say("then serves \(loop.isServingCoreFoundation)")
  loop.stopServingCoreFoundation()
  say("then \(loop.isServingCoreFoundation)")
}

func withLateCoreFoundation() {
  let loop = RunLoop.main
  let keeper = loop.keepAlive()
  for _ in 0..<1000 { loop.run(mode: .default, for: .zero) }
  say("serves \(loop.isServingCoreFoundation)")
  // Through Core Foundation's own calls, of which Foundation is unaware.
  let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in loop.stop() }
  CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode)
  say("\(loop.run(mode: .default, for: .seconds(10)))")
  say("then serves \(loop.isServingCoreFoundation)")
  keeper.invalidate()
}

func withCoreFoundationElsewhere() {
  let loop = RunLoop.main
  let keeper = loop.keepAlive()
  let log = Log()
  loop.observe(log)
  let thread = startThread {
    waitUntil { RunLoop.main.isWaiting }
    let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
      log.write("T")
      RunLoop.main.stop()
    }
    CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode)
  }
  say("\(loop.run(mode: .default, for: .seconds(1000))): \(log.text)")
  thread.result()
  keeper.invalidate()
}

func withoutDescriptors() {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  let before = limit
  limit.rlim_cur = rlim_t(open("/dev/null", O_RDONLY)) + 1
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  let loop = RunLoop.main
  let fired = Log()
  loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in fired.write("1") }, forMode: .common)
  var unlimited = before
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &unlimited)
  say("reported \(RunLoop.diagnosticCount)")
  // Descriptors are available again for the next item.
  loop.add(
    Timer(timeInterval: 0.002, repeats: false) { _ in
      fired.write("2")
      CFRunLoopStop(CFRunLoopGetMain())
    }, forMode: .common)
  CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1000, false)
  say(fired.text)
}

func stoppedByCoreFoundation() {
  let loop = RunLoop.main
  let isLost = Box(false)
  loop.after(.milliseconds(1)) { _ in CFRunLoopStop(CFRunLoopGetMain()) }
  loop.after(.seconds(10)) { _ in
    isLost.value = true
    loop.stop()
  }
  say("\(loop.runUntilStopped())")
  say("lost \(isLost.value)")
}

/// Runs from work of the main dispatch queue, which would otherwise keep its modes from being empty.
func emptyBesideGuest() {
  guard let guest = try? RunLoop.Guest() else { fail("no guest") }
  let isOver = Box(false)
  func isReady(_ guest: RunLoop.Guest) -> Bool {
    var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }
  DispatchQueue.main.async {
    guard let inner = try? RunLoop.Guest() else { fail("no guest") }
    for _ in 0..<3 { CFRunLoopWakeUp(CFRunLoopGetMain()) }
    var turns = 0
    while turns < 1000, isReady(inner) {
      inner.service()
      turns += 1
    }
    say(turns < 1000 ? "quiet" : "spins")
    inner.invalidate()
    isOver.value = true
  }
  while !isOver.value {
    var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
    poll(&entry, 1, guest.timeoutMilliseconds)
    guest.service()
  }
  guest.invalidate()
}
