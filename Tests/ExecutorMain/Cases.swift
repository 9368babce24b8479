// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import Dispatch
  import Glibc
  import RunLoopCore
  @_spi(ExperimentalCustomExecutors) import RunLoopExecutors
  import RunLoopThreads
  import Synchronization
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  /// A count that several threads increment.
  final class Noted: Sendable {
    let count = Atomic(0)
  }

  extension ExecutorMain {
    /// Sleeps by each clock, on the main actor and elsewhere, all of which must end, and none early.
    @MainActor static func sleeps() async throws {
      let start = ContinuousClock.now
      try await Task.sleep(for: .milliseconds(5))
      try await Task.sleep(for: .milliseconds(5), clock: .suspending)
      try await Task.sleep(until: .now + .milliseconds(5), tolerance: .milliseconds(1), clock: .continuous)
      try await RunLoop.main.sleep(for: .milliseconds(5))
      try await Task.detached { try await Task.sleep(for: .milliseconds(5)) }.value
      require(ContinuousClock.now - start >= .milliseconds(25), "a sleep was short")
      try await Task.sleep(for: .milliseconds(-1))
      try await Task.sleep(until: .now - .seconds(1 << 40), clock: .suspending)
      await withTaskGroup { group in
        for milliseconds in [40, 1, 20] { group.addTask { try? await Task.sleep(for: .milliseconds(milliseconds)) } }
      }
    }

    /// Sleeps cancelled before they begin, while they last, and as part of a group.
    @MainActor static func cancelled() async {
      let early = Task { try await Task.sleep(for: .seconds(3600)) }
      early.cancel()
      require((try? await early.value) == nil, "a sleep of a cancelled task ended by itself")
      let late = Task.detached { try await Task.sleep(until: .now + .seconds(3600), clock: .suspending) }
      await Task.yield()
      late.cancel()
      require((try? await late.value) == nil, "a cancelled sleep ended by itself")
      await withTaskGroup { group in
        for _ in 0..<100 { group.addTask { try? await Task.sleep(for: .seconds(3600)) } }
        group.cancelAll()
      }
      // The main thread did not wait for any of these sleeps.
      await use("queue")
    }

    @MainActor static func isolation() async {
      let other = Thread {
        require(MainActor.executor.isIsolatingCurrentContext() == false, "another thread is the main actor")
      }
      other.start()
      try? other.join()
      MainActor.assertIsolated()
      for _ in 0..<100 {
        await offMain()
        requireMain()
      }
      await use("queue")
      await use("block")
      await use("timer")
    }

    @concurrent static func offMain() async {
      require(!RunLoop.isMainThread, "a concurrent function on the main thread")
    }

    /// Many tasks that share an actor and the main actor.
    @MainActor static func tasks() async {
      actor Counter {
        var value = 0
        func add() { value += 1 }
      }
      let counter = Counter()
      await withTaskGroup { group in
        for _ in 0..<1000 {
          group.addTask {
            await counter.add()
            await Task.yield()
            await MainActor.run { requireMain() }
            await counter.add()
          }
        }
      }
      let value = await counter.value
      require(value == 2000, "\(value) calls in place of 2000")
    }

    /// A task that blocks its thread delays neither the main thread nor, with two or more threads, other tasks.
    @MainActor static func blocked() async {
      guard sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 else { return }
      let gate = DispatchSemaphore(value: 0)
      let blocked = Task.detached { await block(gate) }
      for _ in 0..<100 { await offMain() }
      try? await Task.sleep(for: .milliseconds(1))
      await use("later")
      gate.signal()
      await blocked.value
    }

    nonisolated static func block(_ gate: DispatchSemaphore) async { wait(gate) }
    nonisolated static func wait(_ gate: DispatchSemaphore) { gate.wait() }

    /// Tasks that prefer the default executor or a resident thread, and actors isolated to one.
    @MainActor static func preference() async {
      await Task(executorPreference: Task.defaultExecutor) {
        await offMain()
        await Task.yield()
        await offMain()
      }.value
      await Task(executorPreference: globalConcurrentExecutor) { await offMain() }.value
      guard let thread = try? ResidentThread(name: "preferred") else { return require(false, "no thread") }
      await Task(executorPreference: thread) {
        require(thread.isIsolatingCurrentContext() == true, "a preferred thread was left")
        try? await Task.sleep(for: .milliseconds(1))
        require(thread.isIsolatingCurrentContext() == true, "a preferred thread was left after a sleep")
        await MainActor.run { requireMain() }
        require(thread.isIsolatingCurrentContext() == true, "a preferred thread was left for the main actor")
      }.value
    }

    /// A nested run of the executor serves the main queue and blocks, and ends by its condition.
    @MainActor static func until() {
      let noted = Noted()
      DispatchQueue.global().async {
        for _ in 0..<3 { RunLoop.main.perform { noted.count.wrappingAdd(1, ordering: .relaxed) } }
        DispatchQueue.main.async { noted.count.wrappingAdd(1, ordering: .relaxed) }
      }
      do {
        try MainActor.executor.runUntil { noted.count.load(ordering: .relaxed) == 4 }
      } catch { require(false, "\(error)") }
      require(noted.count.load(ordering: .relaxed) == 4, "the run ended too early")
    }

    /// Jobs scheduled directly with the executors run on them.
    @MainActor static func scheduled() async {
      guard let main = MainActor.executor as? any SchedulingExecutor,
        let pool = Task.defaultExecutor as? any SchedulingExecutor
      else { return require(false, "an executor that keeps no time") }
      await resume(by: main, after: .milliseconds(1))
      await resume(by: pool, after: .milliseconds(1))
    }

    /// Resumes an actor's job through a scheduler, and checks where it runs.
    @MainActor static func resume(by scheduler: any SchedulingExecutor, after delay: Duration) async {
      final class Postponer: SerialExecutor {
        let scheduler: any SchedulingExecutor
        let delay: Duration
        init(_ scheduler: any SchedulingExecutor, _ delay: Duration) {
          (self.scheduler, self.delay) = (scheduler, delay)
        }
        func enqueue(_ job: consuming ExecutorJob) { scheduler.enqueue(job, after: delay, clock: .continuous) }
      }
      actor Late {
        nonisolated let executor: Postponer
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        init(_ executor: Postponer) { self.executor = executor }
        func place() -> String { RunLoop.isMainThread ? "main" : Thread.current.name ?? "another" }
      }
      let start = ContinuousClock.now
      let place = await Late(Postponer(scheduler, delay)).place()
      require(ContinuousClock.now - start >= delay, "a job was early")
      require(
        place.hasPrefix(scheduler is any MainExecutor ? "main" : "tasks"),
        "a job of \(type(of: scheduler)) ran on \(place)")
    }

    /// Dispatch parks the main thread, and runs the main actor's jobs from then on.
    @MainActor static func leaves() async {
      RunLoop.main.perform { leave() }
      await offMain()
      // Until it is parked, the thread runs the work that waits for its loop.
      while RunLoop.isMainThread { await offMain() }
      MainActor.assertIsolated()
      dispatchPrecondition(condition: .onQueue(.main))
      say("ok")
      exit(0)
    }

    nonisolated static func leave() { dispatchMain() }

    /// A run nested in a job of the main actor serves the loop, but no other job of the main actor.
    @MainActor static func nested() async {
      // The part of an async main before its first suspension is not a job of the loop.
      await Task.yield()
      let noted = Noted()
      let task = Task { @MainActor in noted.count.store(1, ordering: .relaxed) }
      nest()
      require(noted.count.load(ordering: .relaxed) == 0, "a job of the main actor ran in another")
      await task.value
      require(noted.count.load(ordering: .relaxed) == 1, "a job was lost")
    }

    @MainActor static func nest() {
      let noted = Noted()
      RunLoop.main.schedule(in: .milliseconds(5)) { _ in noted.count.store(1, ordering: .relaxed) }
      while noted.count.load(ordering: .relaxed) == 0 { RunLoop.main.run(mode: .default, for: .milliseconds(1)) }
    }
  }
#endif
