// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import TestSupport

/// Six loops whose behavior must not be reported as a hang.
final class Innocents: Sendable {
  private let time: UInt32
  private let workers: [String: ResidentThread]

  init(lasting time: UInt32) {
    self.time = time
    let names = ["idle", "busy", "nested", "below", "others", "expected"]
    workers = Dictionary(uniqueKeysWithValues: names.map { ($0, makeWorker($0)) })
    for worker in workers.values { while !worker.runLoop.isWaiting { usleep(100) } }
  }

  private func loop(_ name: String) -> RunLoop {
    guard let worker = workers[name] else { fatalError("\(name)") }
    return worker.runLoop
  }

  func run() {
    let time = time
    // Never asleep, and never in one call-out for long.
    callAgain(loop("busy"), until: date(after: time))
    // One call-out, in which a nested run repeatedly sleeps and continues.
    loop("nested").perform {
      let timer = Timer(timeInterval: 0.02, repeats: true) { _ in _ = getpid() }
      RunLoop.current.add(timer, forMode: .default)
      RunLoop.current.run(mode: .default, for: .microseconds(Int(time)))
      timer.invalidate()
    }
    // Half as long as the threshold, with pauses.
    loop("below").schedule(in: .milliseconds(200), repeating: .milliseconds(200)) { _ in usleep(100_000) }
    // The loop's thread sleeps while other threads are blocked.
    for _ in 0..<3 { Blocking.start { usleep(time) } }
    loop("expected").perform {
      HangWatch.expectLongCall("the victim says so") { _ = usleep(time) }
    }
    usleep(time + 200_000)
  }
}

private func date(after microseconds: UInt32) -> SuspendingClock.Instant { .now + .microseconds(Int(microseconds)) }

private func callAgain(_ loop: RunLoop, until end: SuspendingClock.Instant) {
  loop.perform {
    let next = date(after: 2000)
    while date(after: 0) < next {}
    if next < end { callAgain(loop, until: end) }
  }
}

/// Makes short call-outs, with a pause after each.
func shortCalls() {
  let worker = makeWorker("short")
  worker.runLoop.schedule(in: .milliseconds(20), repeating: .milliseconds(20)) { _ in usleep(10_000) }
  say("ready")
  while true { pause() }
}

@inline(never) func hangBeforeAnybodyLooks() { usleep(microseconds) }

/// Posts blocks of five milliseconds each that fill the whole time, from one call-out.
@inline(never) func postMuch(_ loop: RunLoop, _ isOver: Flag) {
  for _ in 0..<(microseconds / 5000) { loop.perform { usleep(5000) } }
  loop.perform { isOver.set() }
}

/// The thirteen hangs, in a process that watches itself.
final class Watched: Sendable {
  private let time: UInt32

  init(lasting time: UInt32) { self.time = time }

  func run() {
    let hangs = Hangs(lasting: time)
    let watch = HangWatch(.init(threshold: .milliseconds(250), maximumPerMinute: 100, level: .record)) { report in
      guard report.end == nil else { return say("over \(report.threadName)") }
      let blocked = report.blockedIn.map { $0.call } ?? "-"
      let image = report.stack.first?.image?.split(separator: "/").last ?? "-"
      say(
        "found \(report.threadName) \(report.kind ?? "-") \(report.processor.rawValue) \(blocked) \(report.stack.count) "
          + "\(image) \(report.code == nil ? "-" : "code") \(report.postedFrom == nil ? "-" : "posted")")
    }
    say("ready")
    withExtendedLifetime(watch) {
      hangs.run()
      usleep(300_000)
    }
    say("interrupted \(Interruptions.count)")
  }
}
