import CRace
import Race
import RunLoopCore

// How the time of an operation grows with what there is. Everything in processor time, on one thread.

/// Runs `body` on a thread of its own, with a loop of its own, and waits for it.
private func onFreshLoop(_ body: @escaping @Sendable (RunLoop) -> Void) {
  let gate = Gate()
  onThread {
    body(RunLoop.current)
    gate.open()
  }
  gate.wait()
}

/// Calls `body` with each size up to the largest, each on a thread and a loop of its own.
private func forSizes(upTo largest: Int64, _ body: @escaping @Sendable (RunLoop, Int64) -> Void) {
  var size: Int64 = 100
  while size <= race_scaled(largest, 1000) {
    let n = size
    onFreshLoop { body($0, n) }
    size *= 10
  }
}

/// Reports the time for each of `count` operations.
private func report(_ metric: String, _ n: Int64, of count: Int64, _ body: () -> Void) {
  let before = race_cpu()
  body()
  race_report_at(metric, n, Double(race_cpu() - before) / Double(count), "ns")
}

/// Posts that stops the loop behind everything that was posted.
private func runAll(_ loop: RunLoop) {
  loop.perform { RunLoop.current.stop() }
  loop.runUntilStopped()
}

/// G1: posts, while there are more and more of them.
func g1() {
  forSizes(upTo: 1_000_000) { loop, n in
    report("post", n, of: n) { for _ in 0..<n { loop.perform { race_run_one() } } }
    report("run a post", n, of: n) { runAll(loop) }
  }
}

/// G2: posts for a mode that does not run.
func g2() {
  forSizes(upTo: 1_000_000) { loop, n in
    report("post for another mode", n, of: n) {
      for _ in 0..<n { loop.perform(inModes: ["other"]) { race_run_one() } }
    }
    let passes = Passes(loop)
    _ = passes.run(100)
    race_report_at("pass beside them", n, passes.run(race_scaled(100_000, 100)), "ns")
    let count = race_scaled(100_000, 100)
    report("post and run beside them", n, of: count) {
      for _ in 0..<count { loop.perform { race_run_one() } }
      runAll(loop)
    }
    withExtendedLifetime(passes) {}
  }
}

/// G3: timers.
func g3() {
  forSizes(upTo: 1_000_000) { loop, n in
    var random = RandomDates()
    let base = loop.now
    var timers: [Timer] = []
    timers.reserveCapacity(Int(n))
    report("add", n, of: n) {
      for _ in 0..<n {
        let timer = Timer(deadline: base.later(random.far())) { _ in race_check(false, "a timer has fired") }
        loop.add(timer, forMode: .default)
        timers.append(timer)
      }
    }
    let count = race_scaled(100_000, 100)
    report("move", n, of: count) {
      for _ in 0..<count { timers[random.index(n)].deadline = base.later(random.far()) }
    }
    report("cancel", n, of: n) { for timer in timers { timer.invalidate() } }
    timers = []
    let countdown = Left(n, loop)
    let fire: @Sendable (Timer) -> Void = { _ in countdown.count() }
    for _ in 0..<n { loop.add(Timer(deadline: base.later(random.within(1000)), block: fire), forMode: .default) }
    report("fire", n, of: n) { loop.runUntilStopped() }
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
  forSizes(upTo: 100_000) { loop, n in
    report("add", n, of: n) { for _ in 0..<n { loop.add(RunLoop.Source {}, forMode: .default) } }
    let passes = Passes(loop)
    _ = passes.run(100)
    race_report_at("pass", n, passes.run(race_scaled(100_000, 100)), "ns")
    withExtendedLifetime(passes) {}
  }
}

/// G5: descriptors that are watched and not ready, and one that is.
func g5() {
  race_raise_descriptor_limit()
  forSizes(upTo: 10_000) { loop, n in
    let descriptors = (0..<n).map { race_event_descriptor($0 == n / 2) }
    let count = race_scaled(50_000, 100)
    let left = Left(count, loop)
    report("add", n, of: n) {
      for descriptor in descriptors {
        let source = RunLoop.DescriptorSource(descriptor: descriptor, events: .readable) { _, _ in left.count() }
        do { try loop.add(source, forMode: .default) } catch { race_check(false, "\(error)") }
      }
    }
    // Nobody reads it, so that it is ready in every pass.
    report("pass that serves a descriptor", n, of: count) { loop.runUntilStopped() }
    for descriptor in descriptors { race_close(descriptor) }
  }
}

/// G6: modes, with an idle source in each.
func g6() {
  forSizes(upTo: 1000) { loop, n in
    for index in 0..<n { loop.add(RunLoop.Source {}, forMode: RunLoop.Mode("mode \(index)")) }
    let passes = Passes(loop)
    _ = passes.run(100)
    race_report_at("pass", n, passes.run(race_scaled(100_000, 100)), "ns")
    let count = race_scaled(100_000, 100)
    report("post and run", n, of: count) {
      for _ in 0..<count { loop.perform { race_run_one() } }
      runAll(loop)
    }
    for index in 0..<n {
      do { try loop.addCommonMode(RunLoop.Mode("mode \(index)")) } catch { race_check(false, "\(error)") }
    }
    report("post and run, all modes common", n, of: count) {
      for _ in 0..<count { loop.perform(inModes: [.common]) { race_run_one() } }
      runAll(loop)
    }
    let timer = Timer(deadline: loop.now.later(60_000_000_000)) { _ in }
    report("add a timer to the common modes, each", n, of: n) { loop.add(timer, forMode: .common) }
    timer.invalidate()
    withExtendedLifetime(passes) {}
  }
}
