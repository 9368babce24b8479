// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Glibc
  import Synchronization
  import TestRules
  import Testing

  import TestSupport

  @testable import RunLoopCore

  @Suite("The system has too little", .timeLimit(.minutes(20)))
  struct ShortageTests {
    /// A system call that fails after a number of successful calls.
    struct Shortage: Sendable, CustomTestStringConvertible {
      let call: SystemCall
      let number: Int32
      var after = 0

      var testDescription: String { "\(SystemError(call: call.rawValue, number: number)) after \(after)" }

      func apply(to plan: FaultPlan) {
        for _ in 0..<after { plan.plan(call, nil) }
        plan.plan(call, .fails(number))
      }
    }

    /// The calls for a loop's first descriptor: a counter, a set, and adding the counter and the descriptor to the
    /// set.
    private static let first: [Shortage] =
      [EMFILE, ENFILE, ENOMEM].flatMap { number in
        [SystemCall.eventCreate, .epollCreate].map { Shortage(call: $0, number: number) }
      }
      + [ENOMEM, ENOSPC].flatMap { number in
        (0...1).map { Shortage(call: .epollControl, number: number, after: $0) }
      }

    @Test("an add that fails says why, adds nothing, and succeeds later", .rule(.r114, .m7), arguments: first)
    func add(shortage: Shortage) throws {
      let pipe = try RawPipe()
      let log = record { _, loop, log in
        pipe.write()
        let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
          log.write("D")
          source.invalidate()
        }
        let plan = FaultPlan()
        shortage.apply(to: plan)
        let error = plan.rule { failure { () throws(RunLoopError) in try loop.add(source, forMode: .default) } }
        let reason = SystemError(call: shortage.call.rawValue, number: shortage.number)
        log.write("\(error == .cannotWatch(descriptor: pipe.reading, reason)) \(plan.isUsedUp)")
        log.write(
          "\(loop.contains(source, forMode: .default)) \(loop.pollSet() == nil) \(loop.statistics.rejectionCount)")
        loop.run(log)
        loop.perform { log.write("B") }
        loop.run(log)
        log.write("\(failure { () throws(RunLoopError) in try loop.add(source, forMode: .default) } == nil)")
        loop.run(log)
      }
      #expect(
        log == "true true false true 1 finished E BT BS B BW AW X timedOut true E BT BS BW AW D X finished")
    }

    /// The calls for a common source in a second mode: a set, and adding the counter and the descriptor to it.
    private static let second: [Shortage] = [
      Shortage(call: .epollCreate, number: EMFILE, after: 1), Shortage(call: .epollControl, number: ENOMEM, after: 2),
      Shortage(call: .epollControl, number: ENOSPC, after: 3),
    ]

    @Test("a common source enters all common modes or none", .rule(.r101, .m7), arguments: second)
    func addCommon(shortage: Shortage) throws {
      let pipe = try RawPipe()
      let log = record(observing: nil) { _, loop, log in
        pipe.write()
        let modes: [RunLoop.Mode] = [.default, "a", .common]
        let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in log.write("D") }
        log.write("\(failure { () throws(RunLoopError) in try loop.addCommonMode("a") } == nil)")
        let plan = FaultPlan()
        shortage.apply(to: plan)
        let error = plan.rule { failure { () throws(RunLoopError) in try loop.add(source, forMode: .common) } }
        let reason = SystemError(call: shortage.call.rawValue, number: shortage.number)
        log.write("\(error == .cannotWatch(descriptor: pipe.reading, reason))")
        for mode in modes { log.write("\(loop.contains(source, forMode: mode))") }
        log.write("\(loop.pollSet() == nil) \(loop.pollSet("a") == nil)")
        loop.run(log, for: .zero)
        log.write("\(failure { () throws(RunLoopError) in try loop.add(source, forMode: .common) } == nil)")
        for mode in modes { log.write("\(loop.contains(source, forMode: mode))") }
        for mode in modes.prefix(2) { loop.run(log, mode: mode, for: .zero) }
      }
      #expect(
        log == "true true false false false true true finished true true true true D timedOut D timedOut")
    }

    @Test(
      "a mode becomes common with all common sources or with none", .rule(.r102, .m7),
      arguments: [
        Shortage(call: .epollCreate, number: EMFILE),
        Shortage(call: .epollControl, number: ENOMEM),
        Shortage(call: .epollControl, number: ENOMEM, after: 1),
        Shortage(call: .epollControl, number: ENOMEM, after: 2),
        Shortage(call: .epollControl, number: ENOSPC, after: 3),
      ])
    func addCommonMode(shortage: Shortage) throws {
      let pipes = try (0..<3).map { _ in try RawPipe() }
      let log = record(observing: nil) { _, loop, log in
        let sources = pipes.map { pipe in
          pipe.write()
          return loop.watch(pipe.reading, mode: .common) { _, _ in
            log.write("D")
            pipe.read()
          }
        }
        let timer = Timer(at: 0) { _ in log.write("T") }
        loop.add(timer, forMode: .common)
        func places() -> String {
          "\(sources.count { loop.contains($0, forMode: "a") }) \(loop.contains(timer, forMode: "a"))"
        }
        let plan = FaultPlan()
        shortage.apply(to: plan)
        let error = plan.rule { failure { () throws(RunLoopError) in try loop.addCommonMode("a") } }
        guard case .cannotWatch(let descriptor, let reason) = error else { return log.write("no error") }
        log.write("\(pipes.contains { $0.reading == descriptor })")
        log.write("\(reason == SystemError(call: shortage.call.rawValue, number: shortage.number))")
        log.write("\(places()) \(loop.pollSet("a") == nil)")
        loop.run(log, mode: "a", for: .zero)
        // It is not common, so new common items do not enter it.
        let later = loop.keepAlive(.common)
        log.write("\(loop.contains(later, forMode: "a"))")
        log.write("\(failure { () throws(RunLoopError) in try loop.addCommonMode("a") } == nil)")
        log.write("\(places()) \(loop.contains(later, forMode: "a"))")
        for _ in 0..<3 { loop.run(log, mode: "a", returnAfterSourceHandled: true) }
      }
      let served = "T D handledSource D handledSource D handledSource"
      #expect(log == "true true 0 false true finished false true 3 true true \(served)")
    }

    @Test("a source that was in a mode before stays there when the mode cannot become common", .rule(.r102, .m7))
    func staysWhereItWas() throws {
      let pipes = [try RawPipe(), try RawPipe()]
      let log = record(observing: nil) { _, loop, log in
        let sources = pipes.map { loop.watch($0.reading, mode: .common) }
        do { try loop.add(sources[0], forMode: "a") } catch { log.write("\(error)") }
        let plan = FaultPlan()
        plan.plan(.epollControl, .fails(ENOMEM))
        let error = plan.rule { failure { () throws(RunLoopError) in try loop.addCommonMode("a") } }
        log.write("\(error != nil)")
        log.write("\(loop.contains(sources[0], forMode: "a")) \(loop.contains(sources[1], forMode: "a"))")
      }
      #expect(log == "true true false")
    }

    @Test(
      "a main loop whose dispatch queue has no handle is made, and serves the queue as soon as it has one",
      .rule(.r27, .m7))
    func mainQueueWithoutHandle() throws {
      let queue = try WakeDescriptor()
      let asked = Counter()
      let log = onNewThread {
        let log = Log()
        let reason = SystemError(call: "eventfd", number: EMFILE)
        let loop = RunLoop.attach(
          RunLoop(threadID: RunLoop.callingThreadID, waiter: SteppedTime()) { () throws(SystemError) in
            guard asked.add() > 2 else { throw reason }
            return queue.descriptor.number
          })
        loop.keepAlive("a")
        log.write("\(loop.pollSet(.default) == nil)")
        let error = failure { () throws(RunLoopError) in try loop.addCommonMode("a") }
        log.write("\(error == .cannotServeMainQueue("a", reason))")
        log.write("\(loop.run(mode: .default, for: .zero)) \(loop.pollSet(.default) != nil)")
        log.write("\(failure { () throws(RunLoopError) in try loop.addCommonMode("a") } == nil)")
        return log.text
      }
      #expect(log == "true true timedOut true true")
    }

    @Test("a mode in which the main dispatch queue cannot be served does not become common", .rule(.r27, .m7))
    func mainQueue() throws {
      let queue = try WakeDescriptor()
      let log = onNewThread {
        let log = Log()
        let loop = RunLoop.attach(
          RunLoop(
            threadID: RunLoop.callingThreadID, waiter: SteppedTime(), mainQueueHandle: { queue.descriptor.number }))
        loop.keepAlive("a")
        let plan = FaultPlan()
        plan.plan(.epollCreate, .fails(EMFILE))
        let error = plan.rule { failure { () throws(RunLoopError) in try loop.addCommonMode("a") } }
        log.write("\(error == .cannotServeMainQueue("a", SystemError(call: "epoll_create1", number: EMFILE)))")
        let source = loop.keepAlive(.common)
        log.write("\(loop.contains(source, forMode: "a")) \(loop.pollSet("a") == nil)")
        log.write("\(failure { () throws(RunLoopError) in try loop.addCommonMode("a") } == nil)")
        log.write("\(loop.contains(source, forMode: "a"))")
        return log.text
      }
      #expect(log == "true false true true true")
    }

    @Test("a mode that did not become common does not watch the main dispatch queue", .rule(.r27, .m7))
    func mainQueueAfterFailure() throws {
      let queue = try WakeDescriptor()
      let pipe = try RawPipe()
      let log = onNewThread {
        let log = Log()
        let loop = RunLoop.attach(
          RunLoop(
            threadID: RunLoop.callingThreadID, waiter: SteppedTime(), mainQueueHandle: { queue.descriptor.number }))
        loop.watch(pipe.reading, mode: .common)
        loop.keepAlive("a")
        let plan = FaultPlan()
        let reason = SystemError(call: "epoll_ctl", number: ENOMEM)
        // The counter, the source and the queue are added to the mode's set in this order.
        plan.plan(.epollControl, nil, .fails(ENOMEM), nil, nil, .fails(ENOMEM))
        let first = plan.rule { failure { () throws(RunLoopError) in try loop.addCommonMode("a") } }
        log.write("\(first == .cannotWatch(descriptor: pipe.reading, reason)) \(loop.pollSet("a") == nil)")
        let second = plan.rule { failure { () throws(RunLoopError) in try loop.addCommonMode("a") } }
        log.write("\(second == .cannotServeMainQueue("a", reason)) \(loop.pollSet("a") == nil)")
        return log.text
      }
      #expect(log == "true true true true")
    }

    @Test(
      "an epoll set that cannot be recreated at first is recreated later", .rule(.m7),
      arguments: [SystemCall.epollCreate, .epollControl])
    func remake(call: SystemCall) throws {
      let pipes = [try RawPipe(), try RawPipe()]
      let number = pipes[0].duplicateReading()
      let log = record(observing: nil) { time, loop, log in
        pipes[0].write()
        let passes = Log()
        loop.add(
          RunLoop.Observer(activities: .beforeTimers) { _, _ in
            passes.write("BT")
            if passes.count(of: "BT") == 20 { loop.stop() }
          }, forMode: .default)
        let stray = loop.watch(number)
        loop.watch(pipes[1].reading) { _, _ in
          time.stamp(log, "D")
          pipes[1].read()
        }
        close(number)
        stray.invalidate()
        time.at(.milliseconds(20)) { pipes[1].write() }
        let plan = FaultPlan()
        // The counter is added to the new set before the descriptor.
        if call == .epollControl { plan.plan(call, nil) }
        plan.plan(call, .fails(ENOMEM))
        plan.rule { loop.run(log) }
        log.write("\(plan.isUsedUp) \(passes.count(of: "BT") <= 4)")
      }
      #expect(log == "D20 timedOut true true")
    }
  }

  @Suite("Waits that the kernel ends early", .timeLimit(.minutes(20)))
  struct EarlyWaitTests {
    @Test(
      "an epoll wait that ends early costs no pass and no call-out", .rule(.r2, .m20),
      arguments: [FaultPlan.Fault.fails(EINTR), .answers(0)])
    func epoll(fault: FaultPlan.Fault) throws {
      let pipe = try RawPipe()
      let log = onNewThread {
        let (loop, log, plan) = (RunLoop.current, Log(), FaultPlan())
        loop.observe(log)
        loop.watch(pipe.reading) { _, _ in
          log.write("D")
          loop.stop()
        }
        pipe.write()
        plan.plan(.epollWaitNanoseconds, fault, fault, fault)
        plan.rule { log.write("\(loop.runUntilStopped())") }
        return "\(log.text) \(plan.isUsedUp)"
      }
      #expect(log == "E BT BS BW AW D X stopped true")
    }

    @Test("an epoll wait that ends early continues until a timer's date", .rule(.r2, .m20))
    func epollWithTimer() throws {
      let pipe = try RawPipe()
      let log = onNewThread {
        let (loop, log, plan) = (RunLoop.current, Log(), FaultPlan())
        loop.observe(log)
        let source = loop.watch(pipe.reading)
        loop.after(.milliseconds(20)) { _ in
          log.write("T")
          source.invalidate()
        }
        plan.plan(.epollWaitNanoseconds, .fails(EINTR), .answers(0))
        plan.rule { log.write("\(loop.runUntilStopped())") }
        return log.text
      }
      #expect(log == "E BT BS BW AW T X finished")
    }

    @Test(
      "a futex sleep that ends early costs no pass", .rule(.r2, .m20),
      arguments: [FaultPlan.Fault.answers(0), .fails(EINTR), .fails(EAGAIN), .fails(ETIMEDOUT)])
    func futex(fault: FaultPlan.Fault) {
      let log = onNewThread {
        let (loop, log, plan) = (RunLoop.current, Log(), FaultPlan())
        loop.observe(log)
        loop.keepAlive()
        let sleeps = Log()
        loop.setTraceHook { event in
          guard case .sleep = event.kind else { return }
          sleeps.write("sleep")
          if sleeps.count(of: "sleep") == 5 { loop.stop() }
        }
        plan.plan(.futexWait, fault, fault, fault, fault)
        plan.rule { log.write("\(loop.runUntilStopped())") }
        loop.setTraceHook(nil)
        return "\(log.text) \(plan.isUsedUp) \(sleeps.count(of: "sleep"))"
      }
      #expect(log == "E BT BS BW AW X stopped true 5")
    }

    @Test("a futex sleep that ends early continues until a timer's date", .rule(.r2, .m20))
    func futexWithTimer() {
      let log = onNewThread {
        let (loop, log, plan) = (RunLoop.current, Log(), FaultPlan())
        loop.observe(log)
        loop.after(.milliseconds(20)) { _ in log.write("T") }
        plan.plan(.futexWait, .answers(0), .fails(EINTR), .answers(0))
        plan.rule { log.write("\(loop.runUntilStopped())") }
        return log.text
      }
      #expect(log == "E BT BS BW AW T X finished")
    }

    @Test(
      "a write to the counter that a signal interrupts is made again, and the wake-up is not lost", .rule(.r44, .m2))
    func eventWrite() throws {
      let pipe = try RawPipe()
      let running = RunningLoop { loop, _ in loop.watch(pipe.reading) }
      running.loop.awaitSleep(.epoll)
      let plan = FaultPlan()
      plan.plan(.eventWrite, .fails(EINTR), .fails(EINTR))
      plan.rule { running.loop.stop() }
      #expect(running.result() == "stopped")
      #expect(plan.counts[.eventWrite] == 3)
    }
  }

  @Suite("Kernels without a wait by the nanosecond", .timeLimit(.minutes(20)))
  struct MillisecondWaitTests {
    @Test(
      "if the kernel lacks a wait in nanoseconds, or a filter forbids it, the loop waits in milliseconds",
      .rule(.r2, .r14))
    func fallsBack() async {
      await #expect(processExitsWith: .success) {
        for number in [ENOSYS, EPERM] {
          PollSet.countsMilliseconds.store(false, ordering: .relaxed)
          let pipe = try RawPipe()
          let log = onNewThread {
            let (loop, log, plan) = (RunLoop.current, Log(), FaultPlan())
            loop.observe(log)
            loop.watch(pipe.reading) { _, _ in
              log.write("D")
              pipe.read()
              loop.stop()
            }
            plan.plan(.epollWaitNanoseconds, .fails(number))
            plan.plan(.epollWait, nil, .fails(EINTR), nil)
            for _ in 0..<2 {
              pipe.write()
              plan.rule { log.write("\(loop.runUntilStopped())") }
            }
            return "\(log.text) \(plan.counts[.epollWaitNanoseconds] ?? 0) \(plan.counts[.epollWait] ?? 0)"
          }
          #expect(log == "E BT BS BW AW D X stopped E BT BS BW AW D X stopped 1 3")
        }
        let countsMilliseconds = PollSet.countsMilliseconds.load(ordering: .relaxed)
        #expect(countsMilliseconds)
      }
    }

    @Test("milliseconds are rounded up, so that a wait for part of one does not spin", .rule(.r2, .r14))
    func roundsUp() async {
      await #expect(processExitsWith: .success) {
        PollSet.countsMilliseconds.store(true, ordering: .relaxed)
        let pipe = try RawPipe()
        for timeout in [Duration.microseconds(1), .microseconds(400), .microseconds(1900)] {
          let (result, waits) = onNewThread {
            let (loop, plan) = (RunLoop.current, FaultPlan())
            loop.watch(pipe.reading)
            let result = plan.rule { loop.run(mode: .default, for: timeout) }
            return (result, plan.counts[.epollWait] ?? 0)
          }
          #expect(result == .timedOut)
          #expect(waits <= 1)
        }
      }
    }

    @Test("an unlimited wait is unlimited in milliseconds too, and can be woken", .rule(.r2, .r45))
    func endless() async {
      await #expect(processExitsWith: .success) {
        PollSet.countsMilliseconds.store(true, ordering: .relaxed)
        let pipe = try RawPipe()
        let running = RunningLoop { loop, log in
          loop.observe(log)
          loop.watch(pipe.reading)
        }
        running.loop.awaitSleep(.epoll)
        running.loop.perform { running.loop.stop() }
        #expect(running.result() == "E BT BS BW AW X stopped")
      }
    }
  }
#endif
