// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore

// Measures how an operation's processor time grows with the number of existing items.

/// Runs `body` with a new loop on a new thread, and waits for it.
private func onFreshLoop(_ body: @escaping @Sendable (RunLoop) -> Void) {
  let gate = Gate()
  onThread {
    body(RunLoop.current)
    gate.open()
  }
  gate.wait()
}

/// The times of operations with `n` existing things.
private final class Times: @unchecked Sendable {
  // Sendable: used by one thread at a time.
  let n: Int64
  /// The number of loops that are measured.
  let repeats: Int64
  private var totals: [(metric: String, time: Int64, count: Int64)] = []

  init(_ n: Int64) {
    self.n = n
    repeats = max(1, race_scaled(20_000, 100) / n)
  }

  /// The number of operations to measure on each loop, if it is independent of `n`.
  var count: Int64 { race_scaled(20_000, 100) / repeats }

  /// Adds the time of `count` operations.
  func measure(_ metric: String, of count: Int64, _ body: () -> Void) {
    // The thread's own time, as the previous loop may still be releasing its memory.
    let before = race_thread_cpu()
    body()
    let time = race_thread_cpu() - before
    if let index = totals.firstIndex(where: { $0.metric == metric }) {
      totals[index].time += time
      totals[index].count += count
    } else {
      totals.append((metric, time, count))
    }
  }

  func report() {
    for total in totals { race_report_at(total.metric, n, Double(total.time) / Double(total.count), "ns") }
  }
}

/// Calls `body` with each size up to the largest, each time with a new loop on a new thread; smaller sizes are
/// repeated.
private func forSizes(upTo largest: Int64, _ body: @escaping @Sendable (RunLoop, Times) -> Void) {
  var size: Int64 = 100
  while size <= race_sized(largest) {
    let times = Times(size)
    for _ in 0..<times.repeats { onFreshLoop { body($0, times) } }
    times.report()
    size *= 10
  }
}

/// Runs everything that was posted.
private func runAll(_ loop: RunLoop) {
  loop.perform { RunLoop.current.stop() }
  loop.runUntilStopped()
}

/// G1: posts, with a growing number of pending ones.
func g1() {
  forSizes(upTo: 1_000_000) { loop, times in
    let n = times.n
    times.measure("post", of: n) { for _ in 0..<n { loop.perform { race_run_one() } } }
    times.measure("run a post", of: n) { runAll(loop) }
  }
}

/// G2: posts for a mode that does not run.
func g2() {
  forSizes(upTo: 1_000_000) { loop, times in
    let n = times.n
    times.measure("post for another mode", of: n) {
      for _ in 0..<n { loop.perform(inModes: ["other"]) { race_run_one() } }
    }
    let passes = Passes(loop)
    _ = passes.run(100)
    times.measure("pass beside them", of: times.count) { _ = passes.run(times.count) }
    let count = times.count
    times.measure("post and run beside them", of: count) {
      for _ in 0..<count { loop.perform { race_run_one() } }
      runAll(loop)
    }
    withExtendedLifetime(passes) {}
  }
}

/// G3: timers.
func g3() {
  forSizes(upTo: 1_000_000) { loop, times in
    let n = times.n
    var random = RandomDates()
    let base = loop.now
    var timers: [Timer] = []
    timers.reserveCapacity(Int(n))
    times.measure("add", of: n) {
      for _ in 0..<n {
        let timer = Timer(deadline: base.later(random.far())) { _ in race_check(false, "a timer has fired") }
        loop.add(timer, forMode: .default)
        timers.append(timer)
      }
    }
    let count = times.count
    times.measure("move", of: count) {
      for _ in 0..<count { timers[random.index(n)].deadline = base.later(random.far()) }
    }
    times.measure("cancel", of: n) { for timer in timers { timer.invalidate() } }
    timers = []
    let countdown = Left(n, loop)
    let fire: @Sendable (Timer) -> Void = { _ in countdown.count() }
    for _ in 0..<n { loop.add(Timer(deadline: base.later(random.within(1000)), block: fire), forMode: .default) }
    times.measure("fire", of: n) { loop.runUntilStopped() }
  }
}

/// Stops a loop when everything has been counted.
private final class Left: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private var left: Int64
  private let loop: RunLoop

  init(_ left: Int64, _ loop: RunLoop) {
    self.left = left
    self.loop = loop
  }

  func count() {
    left -= 1
    if left == 0 { loop.stop() }
  }
}

/// G4: sources that are not signalled.
func g4() {
  forSizes(upTo: 100_000) { loop, times in
    let n = times.n
    times.measure("add", of: n) { for _ in 0..<n { loop.add(RunLoop.Source {}, forMode: .default) } }
    let passes = Passes(loop)
    _ = passes.run(100)
    times.measure("pass", of: times.count) { _ = passes.run(times.count) }
    withExtendedLifetime(passes) {}
  }
}

/// G5: descriptors that are watched and not ready, and one that is ready.
func g5() {
  race_raise_descriptor_limit()
  forSizes(upTo: 10_000) { loop, times in
    let n = times.n
    let descriptors = (0..<n).map { race_event_descriptor($0 == n / 2) }
    let count = times.count
    let left = Left(count, loop)
    times.measure("add", of: n) {
      for descriptor in descriptors {
        let source = RunLoop.DescriptorSource(descriptor: descriptor, events: .readable) { _, _ in left.count() }
        do { try loop.add(source, forMode: .default) } catch { race_check(false, "\(error)") }
      }
    }
    // The descriptor is never read, so it is ready in every pass.
    times.measure("pass that serves a descriptor", of: count) { loop.runUntilStopped() }
    for descriptor in descriptors { race_close(descriptor) }
  }
}

/// G6: modes, with an idle source in each.
func g6() {
  forSizes(upTo: 1000) { loop, times in
    let n = times.n
    for index in 0..<n { loop.add(RunLoop.Source {}, forMode: RunLoop.Mode("mode \(index)")) }
    let passes = Passes(loop)
    _ = passes.run(100)
    times.measure("pass", of: times.count) { _ = passes.run(times.count) }
    let count = times.count
    times.measure("post and run", of: count) {
      for _ in 0..<count { loop.perform { race_run_one() } }
      runAll(loop)
    }
    for index in 0..<n {
      do { try loop.addCommonMode(RunLoop.Mode("mode \(index)")) } catch { race_check(false, "\(error)") }
    }
    times.measure("post and run, all modes common", of: count) {
      for _ in 0..<count { loop.perform(inModes: [.common]) { race_run_one() } }
      runAll(loop)
    }
    let timer = Timer(deadline: loop.now.later(60_000_000_000)) { _ in }
    times.measure("add a timer to the common modes, each", of: n) { loop.add(timer, forMode: .common) }
    timer.invalidate()
    withExtendedLifetime(passes) {}
  }
}
