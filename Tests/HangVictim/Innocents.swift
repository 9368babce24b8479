// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import TestSupport

/// Six loops that do what is no hang.
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
    // Never asleep, and never long in one call-out.
    callAgain(loop("busy"), until: date(after: time))
    // One call-out, in which a run sleeps and goes on.
    loop("nested").perform {
      let timer = Timer(timeInterval: 0.02, repeats: true) { _ in _ = getpid() }
      RunLoop.current.add(timer, forMode: .default)
      RunLoop.current.run(mode: .default, for: .microseconds(Int(time)))
      timer.invalidate()
    }
    // Half as long as a hang, with pauses.
    loop("below").schedule(in: .milliseconds(200), repeating: .milliseconds(200)) { _ in usleep(100_000) }
    // Its thread's loop sleeps while others are blocked.
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

/// Short call-outs with a pause after each.
func shortCalls() {
  let worker = makeWorker("short")
  worker.runLoop.schedule(in: .milliseconds(20), repeating: .milliseconds(20)) { _ in usleep(10_000) }
  say("ready")
  while true { pause() }
}

@inline(never) func hangBeforeAnybodyLooks() { usleep(microseconds) }

/// Posts in one call-out what takes the whole time, five milliseconds each.
@inline(never) func postMuch(_ loop: RunLoop, _ isOver: Flag) {
  for _ in 0..<(microseconds / 5000) { loop.perform { usleep(5000) } }
  loop.perform { isOver.set() }
}

/// The thirteen hangs, watched by the process itself.
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
