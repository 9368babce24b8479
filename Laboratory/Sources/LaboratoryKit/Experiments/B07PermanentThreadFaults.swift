// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// B7: seven ways in which the articles' resident threads fail, compared with ours.
///
/// The articles' code hangs, spins or loses work in each of them. Here, its waits are abandoned when no thread is
/// left to end them, and the bench ends its threads.
struct PermanentThreadFaults: Experiment {
  let id = "B7"
  let title = "Seven faults of the articles' resident threads"
  let articles: [Article] = [.qiu, .yongzhen]
  let claim = """
    With a weak reference, a flag, and a stop that is waited for, also in dealloc, the life of a resident thread is under \
    control.
    """
  let verdict = Verdict.refuted(
    """
    It is as long as the one who made the thread stops it once, from another thread, while it runs. Stopped too early, twice, \
    too late, by somebody else or by its own tasks, the thread lives for ever or its stop does; and a task that races the stop \
    is lost. A stop must be remembered, must be anybody's at any time, and must not wait; work must be refused or run.
    """)
  let evidence = """
    R34 of Core Foundation: a stop outside every run ends none that comes later; R35: it ends the innermost run \
    only. The code of the articles does the rest.
    """
  let difference = Difference.numbered(
    ["M14", "M21", "M24"],
    """
    A ResidentThread takes its stop at any time, from anybody and any number of times: from then on no run of \
    its loop goes on, and work is run or rejected.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "(a) CFRunLoopStop before the first run: the articles'", stopBeforeRun(bench),
        requires: "begin; the thread: asleep")
      outcome.observe(
        "(a) ours, stopped as soon as it is made, 50 times", OurThread.stopAtOnce(bench), requires: "50 ended")

      outcome.observe(
        "(b) while (!weakSelf.isStopped), once self is gone: the articles'", spinWithoutSelf(bench),
        requires: "begin turn stop turn; each of three more stops: turn turn turn; the thread: asleep")
      outcome.observe("(b) ours, its handle gone", OurThread.release(bench), requires: "task; ended")

      outcome.observe(
        "(c) released by a task of its own thread: the articles'", releaseOnOwnThread(bench, nested: false),
        requires: "begin end; the thread: returned")
      outcome.observe(
        "(c) by a task that runs the loop: the articles'", releaseOnOwnThread(bench, nested: true),
        requires: "begin; the thread: asleep")
      outcome.observe(
        "(c) ours, by a task that runs the loop", OurThread.releaseOnOwnThread(bench), requires: "released; ended")

      outcome.observe(
        "(d) a stop while another stop is being made: the articles'", stopTwice(bench),
        requires: "begin end; the first stop: done, the second: waits for ever")
      outcome.observe(
        "(d) ours, stopped by four threads, 30 times", OurThread.stopTogether(bench), requires: "30 ended")

      outcome.observe(
        "(e) a task while a stop is being made: the articles'", executeDuringStop(bench),
        requires: "begin end; the task: lost")
      outcome.observe(
        "(e) ours, 100 tasks beside a stop, 30 times", OurThread.executeDuringStop(bench),
        requires: "3000 posted, 0 lost")

      outcome.observe(
        "(f) a stop after the thread has ended by itself: the articles'", stopTooLate(bench),
        requires: "begin end; the stop: waits for ever")
      outcome.observe("(f) ours", OurThread.stopTooLate(bench), requires: "finished; ended")

      outcome.observe(
        "(g) a task stops the run of 1.0e10 s for its own ends: the articles'", stopBySomebodyElse(bench),
        requires: "begin task end; the next task: lost")
      outcome.observe(
        "(g) ours", OurThread.stopBySomebodyElse(bench), requires: "task task; ended")
      return outcome
    }
  }
}

// The articles' code.
extension PermanentThreadFaults {
  /// Returns the events of a thread, and the state it settled in.
  private func fate(of watch: Watch) -> String {
    let rest = watch.settle()
    return "\(watch.events.text); the thread: \(rest.rawValue)"
  }

  private func stopBeforeRun(_ bench: Bench) -> String {
    let isReady = bench.flag()
    let mayRun = bench.flag()
    let permanent = PermanentThread(.coreFoundation, on: bench) { moment in
      guard moment == .beforeRun else { return }
      isReady.set()
      mayRun.wait()
    }
    isReady.wait()
    permanent.watch.stopLoop()
    mayRun.set()
    defer { permanent.innerThread?.end() }
    return fate(of: permanent.watch)
  }

  private func spinWithoutSelf(_ bench: Bench) -> String {
    let watch: Watch
    let thread: WatchedThread
    do {
      let controller = Controller(bench)
      thread = controller.thread
      watch = thread.watch
      watch.settle()
      withExtendedLifetime(controller) {}
    }
    watch.settle()
    let before = watch.events.text
    let stops = (1...3).map { _ in
      thread.performSelectorAndWait { RunLoop.current.stop() }
      return watch.news()
    }
    let rest = watch.settle()
    defer { thread.end() }
    return "\(before); each of three more stops: \(stops.joined(separator: " ")); the thread: \(rest.rawValue)"
  }

  private func releaseOnOwnThread(_ bench: Bench, nested: Bool) -> String {
    let watch: Watch
    let inner: WatchedThread?
    let hasTask = bench.flag()
    do {
      let permanent = PermanentThread(.coreFoundation, on: bench)
      watch = permanent.watch
      inner = permanent.innerThread
      watch.settle()
      let last = Last(permanent)
      permanent.execute {
        hasTask.wait()
        guard nested else { return last.release() }
        // As in a task that shows a modal panel: the release happens while the task runs the loop.
        RunLoop.current.perform { last.release() }
        RunLoop.current.run(mode: .default, for: 1.0e10)
      }
    }
    hasTask.set()
    defer { inner?.end() }
    return fate(of: watch)
  }

  private func stopTwice(_ bench: Bench) -> String {
    let isStopping = bench.flag()
    let isPosted = bench.flag()
    let permanent = PermanentThread(.coreFoundation, on: bench) { moment in
      guard moment == .stopping else { return }
      isStopping.set()
      isPosted.wait()
    }
    permanent.watch.settle()
    let inner = permanent.innerThread
    let second = startThread {
      isStopping.wait()
      return permanent.stop { isPosted.set() }
    }
    let first = permanent.stop()
    let stops = [first, second.result()].map { $0 ? "done" : "waits for ever" }
    permanent.watch.settle()
    defer { inner?.end() }
    return "\(permanent.watch.events.text); the first stop: \(stops[0]), the second: \(stops[1])"
  }

  private func executeDuringStop(_ bench: Bench) -> String {
    let isStopping = bench.flag()
    let isPosted = bench.flag()
    let hasRun = bench.flag()
    let permanent = PermanentThread(.coreFoundation, on: bench) { moment in
      guard moment == .stopping else { return }
      isStopping.set()
      isPosted.wait()
    }
    permanent.watch.settle()
    let inner = permanent.innerThread
    let other = startThread {
      isStopping.wait()
      permanent.execute { hasRun.set() }
      isPosted.set()
    }
    permanent.stop()
    other.result()
    permanent.watch.settle()
    defer { inner?.end() }
    return "\(permanent.watch.events.text); the task: \(hasRun.isSet ? "has run" : "lost")"
  }

  private func stopTooLate(_ bench: Bench) -> String {
    let permanent = PermanentThread(.coreFoundation, on: bench)
    let inner = permanent.innerThread
    permanent.watch.settle()
    permanent.execute { RunLoop.current.stop() }
    _ = inner?.finished()
    let isDone = permanent.stop()
    defer { inner?.end() }
    return "\(permanent.watch.events.text); the stop: \(isDone ? "done" : "waits for ever")"
  }

  private func stopBySomebodyElse(_ bench: Bench) -> String {
    let permanent = PermanentThread(.coreFoundation, on: bench)
    let watch = permanent.watch
    let inner = permanent.innerThread
    let hasRun = bench.flag()
    watch.settle()
    permanent.execute {
      watch.events.write("task")
      // The task has run the loop itself before, and now wants to end that run.
      RunLoop.current.stop()
    }
    watch.settle()
    permanent.execute { hasRun.set() }
    watch.settle()
    defer { inner?.end() }
    return "\(watch.events.text); the next task: \(hasRun.isSet ? "has run" : "lost")"
  }
}

/// Yongzhen's view controller whose thread checks `!weakSelf.isStopped`, with the stop in its dealloc.
private final class Controller: Sendable {
  let thread: WatchedThread
  private let stopped: Flag

  init(_ bench: Bench) {
    let weakSelf = Weak<Controller>()
    stopped = bench.flag()
    thread = WatchedThread(on: bench, name: "MJThread") { watch in
      watch.events.write("begin")
      watch.loop.add(watch.port(), forMode: .default)
      // A message to nil returns NO.
      while !watch.isCut, !(weakSelf.object?.stopped.isSet ?? false) {
        watch.events.write("turn")
        watch.loop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true)
      }
      if !watch.isCut { watch.events.write("end") }
    }
    weakSelf.object = self
    thread.start()
  }

  deinit {
    let events = thread.watch.events
    thread.performSelectorAndWait { [stopped] in
      events.write("stop")
      stopped.set()
      RunLoop.current.stop()
    }
  }
}
