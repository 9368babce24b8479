// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// The behavior of ``ResidentThread`` where the articles' threads fail.
enum OurThread {
  static func stopAtOnce(_ bench: Bench) -> String {
    var ended = 0
    for _ in 1...50 {
      guard let thread = try? ResidentThread(name: "ours") else { continue }
      thread.stop()
      if hasEnded(thread.thread, bench) { ended += 1 }
    }
    return "\(ended) ended"
  }

  static func release(_ bench: Bench) -> String {
    let events = Record()
    let thread: Thread
    do {
      guard let handle = try? ResidentThread(name: "ours") else { return "no thread" }
      thread = handle.thread
      _ = try? handle.perform { events.write("task") }
    }
    return fate(of: thread, events, bench)
  }

  static func releaseOnOwnThread(_ bench: Bench) -> String {
    let events = Record()
    let hasTask = bench.flag()
    let thread: Thread
    do {
      guard let handle = try? ResidentThread(name: "ours") else { return "no thread" }
      thread = handle.thread
      let last = Last(handle)
      _ = try? handle.perform {
        hasTask.wait()
        RunLoop.current.perform {
          last.release()
          events.write("released")
        }
        RunLoop.current.run(mode: .default, for: 1.0e10)
      }
    }
    hasTask.set()
    return fate(of: thread, events, bench)
  }

  static func stopTogether(_ bench: Bench) -> String {
    var ended = 0
    for _ in 1...30 {
      guard let thread = try? ResidentThread(name: "ours") else { continue }
      let stops = (0..<4).map { _ in startThread { _ = thread.stop() } }
      for stop in stops { stop.result() }
      if hasEnded(thread.thread, bench) { ended += 1 }
    }
    return "\(ended) ended"
  }

  static func executeDuringStop(_ bench: Bench) -> String {
    var posted = 0
    var lost = 0
    for _ in 1...30 {
      guard let thread = try? ResidentThread(name: "ours") else { continue }
      let ran = Tally()
      let poster = startThread {
        var rejected = 0
        for _ in 1...100 {
          do { try thread.perform { ran.add() } } catch { rejected += 1 }
        }
        return rejected
      }
      thread.stop()
      let rejected = poster.result()
      guard hasEnded(thread.thread, bench) else { continue }
      posted += 100
      lost += 100 - rejected - ran.count
    }
    bench.log.write("ours: \(posted) posted")
    return "\(posted) posted, \(lost) lost"
  }

  static func stopTooLate(_ bench: Bench) -> String {
    guard let thread = try? ResidentThread(name: "ours") else { return "no thread" }
    thread.stop()
    _ = hasEnded(thread.thread, bench)
    let state = thread.stop()
    return "\(state); \(hasEnded(thread.thread, bench) ? "ended" : "not ended")"
  }

  static func stopBySomebodyElse(_ bench: Bench) -> String {
    guard let thread = try? ResidentThread(name: "ours") else { return "no thread" }
    let events = Record()
    _ = try? thread.perform {
      events.write("task")
      RunLoop.current.stop()
    }
    try? thread.performAndWait(timeout: bench.meeting.patience) { events.write("task") }
    thread.stop()
    return fate(of: thread.thread, events, bench)
  }

  private static func fate(of thread: Thread, _ events: Record, _ bench: Bench) -> String {
    let end = hasEnded(thread, bench) ? "ended" : "not ended"
    bench.log.write("ours: \(events.text); \(end)")
    return "\(events.text); \(end)"
  }

  /// Waits until a thread has finished; returns false after a timeout.
  private static func hasEnded(_ thread: Thread, _ bench: Bench) -> Bool {
    _ = try? thread.join(timeout: bench.meeting.patience)
    return thread.isFinished
  }
}
