// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Looking hosts up", .timeLimit(.minutes(20)))
struct SocketHostTests {
  private func words(_ answer: HostResolver.Answer) -> String {
    switch answer {
    case .success(let addresses): addresses.map(\.description).joined(separator: ",")
    case .failure(let error): "\(error)"
    }
  }

  @Test("a local host is looked up on another thread, and the result arrives on the loop in its mode")
  func localhost() {
    let log = onSocketLoop { loop, log in
      let thread = pthread_self()
      HostResolver.resolve("localhost", port: 80, family: .ipv4, on: loop, inModes: ["a"]) { answer in
        log.write("\(words(answer)) \(pthread_equal(thread, pthread_self()) != 0) \(loop.currentMode?.rawValue ?? "")")
        loop.stop()
      }
      log.write("asked")
      loop.add(RunLoop.Source {}, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(5)))")
      loop.add(RunLoop.Source {}, forMode: "a")
      log.write("\(loop.run(mode: "a", for: .unlimited))")
    }
    #expect(log == "asked timedOut 127.0.0.1:80 true a stopped")
  }

  @Test("a numeric host needs no thread, and its result still arrives on the loop")
  func numeric() {
    let log = onSocketLoop { loop, log in
      for (host, family) in [("127.0.0.1", nil), ("::1", .ipv6), ("::1", .ipv4)] as [(String, SocketAddress.Family?)] {
        HostResolver.resolve(host, port: 1, family: family, on: loop) { log.write(words($0)) }
      }
      loop.perform { loop.stop() }
      log.write("asked")
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "asked 127.0.0.1:1 [::1]:1 \(HostError.unknown(host: "::1")) stopped")
  }

  @Test("the result of a cancelled look-up is dropped, even if it is already queued on the loop")
  func cancelled() {
    let log = onSocketLoop { loop, log in
      let lookup = HostResolver.resolve("127.0.0.1", port: 1, on: loop) { log.write(words($0)) }
      lookup.cancel()
      log.write("\(lookup.isFinished)")
      loop.perform { loop.stop() }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "true stopped")
  }

  @Test("a look-up finishes when its loop ends before its block is called, or has ended")
  func loopEnds() {
    let (ended, ending) = (Box<RunLoop?>(nil), Box<HostLookup?>(nil))
    onNewThread {
      ended.value = RunLoop.current
      ending.value = HostResolver.resolve("127.0.0.1", port: 1, on: .current) { _ in Issue.record("called") }
    }
    #expect(ending.value?.isFinished == true)
    let late = ended.value.map { HostResolver.resolve("127.0.0.1", port: 1, on: $0) { _ in Issue.record("called") } }
    #expect(late?.isFinished == true)
  }

  @Test("the number of look-up threads is limited, and none remains")
  func bounded() {
    let log = onSocketLoop { loop, log in
      let answers = Box(0)
      for _ in 0..<40 {
        HostResolver.resolve("localhost", port: 1, on: loop) { _ in
          answers.value += 1
          if answers.value == 40 { loop.stop() }
        }
      }
      loop.add(RunLoop.Source {}, forMode: .default)
      loop.runUntilStopped()
      log.write("\(answers.value) \((1...HostResolver.maximumLookupCount).contains(HostWorkers.shared.peak))")
    }
    #expect(log == "40 true")
    waitUntil { HostWorkers.shared.threadCount == 0 }
  }

  @Test("tasks may wait for a look-up")
  func tasks() async throws {
    #expect(try await HostResolver.resolve("localhost", port: 7, family: .ipv4) == [.loopback(port: 7)])
    let waiting = Task { try await HostResolver.resolve("localhost", port: 7) }
    waiting.cancel()
    do {
      _ = try await waiting.value
    } catch {
      #expect(error as? HostError == .cancelled(host: "localhost"))
    }
    await #expect(throws: HostError.unknown(host: "a\0b")) { try await HostResolver.resolve("a\0b", port: 7) }
  }

  /// Creates threads whose look-ups hang until the latch opens, except for one host.
  private func hanging(
    until latch: Latch, _ asked: Notes<String> = Notes(), patience: Duration = .seconds(3600)
  ) -> HostWorkers {
    HostWorkers(patience: patience) { query in
      asked.add(query.host)
      if query.host != "fast" { latch.wait() }
      return .success([.loopback(port: query.port)])
    }
  }

  private func query(_ host: String) -> HostResolver.Query { HostResolver.Query(host: host, port: 1, family: nil) }

  @Test("a cancelled look-up leaves the queue and releases its block, in any number")
  func leaves() {
    let (latch, asked, log) = (Latch(), Notes<String>(), Notes<String>())
    let workers = hanging(until: latch, asked)
    for _ in 0..<HostResolver.maximumLookupCount { workers.add(HostLookup(query("slow")) { _, _ in }) }
    waitUntil { asked.count == HostResolver.maximumLookupCount }
    var lookups: [HostLookup] = []
    for number in 0..<20_000 {
      let token = number == 7 ? Token { log.add("released") } : nil
      let lookup = HostLookup(query("\(number)")) { _, _ in token?.touch() }
      workers.add(lookup)
      lookups.append(lookup)
    }
    #expect(workers.waitingCount == 20_000)
    for lookup in lookups.dropLast() { lookup.cancel() }
    #expect(workers.waitingCount == 1 && log.all == ["released"])
    latch.open()
    waitUntil { workers.threadCount == 0 }
    #expect(asked.all.sorted() == ["19999"] + Array(repeating: "slow", count: HostResolver.maximumLookupCount))
  }

  @Test("cancelled look-ups that hang do not delay others")
  func cancelledWhileAsked() {
    let (latch, asked, found) = (Latch(), Notes<String>(), Latch())
    let workers = hanging(until: latch, asked)
    let slow = (0..<HostResolver.maximumLookupCount).map { _ in HostLookup(query("slow")) { _, _ in } }
    for lookup in slow { workers.add(lookup) }
    waitUntil { asked.count == HostResolver.maximumLookupCount }
    workers.add(HostLookup(query("fast")) { _, _ in found.open() })
    #expect(!found.isOpen)
    slow[0].cancel()
    found.wait()
    latch.open()
    waitUntil { workers.threadCount == 0 }
  }

  @Test("look-ups that hang delay others only briefly, and the number of threads is limited")
  func hung() {
    let (latch, found) = (Latch(), Latch())
    let workers = hanging(until: latch, patience: HostResolver.patience)
    for _ in 0..<HostResolver.maximumLookupCount { workers.add(HostLookup(query("slow")) { _, _ in }) }
    workers.add(HostLookup(query("fast")) { _, _ in found.open() })
    found.wait()
    let ends = Notes<Int>()
    for number in 0..<100 { workers.add(HostLookup(query("slow")) { _, _ in ends.add(number) }) }
    for _ in 0..<40 {
      _ = workers.relieve()
      // Each thread has taken its look-up and counts as busy.
      waitUntil { workers.waitingCount == 0 || workers.busyCount == workers.threadCount }
    }
    #expect(workers.threadCount == HostResolver.maximumThreadCount)
    #expect(workers.waitingCount == 100 + HostResolver.maximumLookupCount - HostResolver.maximumThreadCount)
    latch.open()
    waitUntil { ends.count == 100 && workers.threadCount == 0 }
  }

  @Test("a look-up that exceeds its time limit ends with that error, once, on the loop and in a task")
  func timeout() async throws {
    let latch = Latch()
    let workers = hanging(until: latch)
    let log = onVirtualTime { time, loop in
      let log = Log()
      let query = query("slow")
      let lookup = HostResolver.resolve(query, timeout: .seconds(3), on: loop, inModes: [.default], by: workers) {
        log.write(words($0))
      }
      let fast = HostResolver.resolve(
        HostResolver.Query(host: "127.0.0.1", port: 9, family: nil), timeout: .seconds(1), on: loop,
        inModes: [.default], by: workers
      ) { log.write(words($0)) }
      let cancelled = HostResolver.resolve(query, timeout: .seconds(1), on: loop, inModes: [.default], by: workers) {
        log.write(words($0))
      }
      cancelled.cancel()
      log.write("\(loop.runUntilStopped()) \(lookup.isFinished) \(fast.isFinished)")
      return log.text
    }
    let late = HostError.timedOut(host: "slow", after: .seconds(3))
    #expect(log == "127.0.0.1:9 \(late) finished true true")
    await #expect(throws: HostError.timedOut(host: "slow", after: .milliseconds(5))) {
      try await HostResolver.resolve(query("slow"), timeout: .milliseconds(5), by: workers)
    }
    #expect(try await HostResolver.resolve(query("fast"), timeout: .seconds(600), by: workers) == [.loopback(port: 1)])
    latch.open()
    waitUntil { workers.threadCount == 0 }
  }

  #if DEBUG
    @Test("a resolver's error is translated")
    func errors() {
      let query = HostResolver.Query(host: "x", port: 1, family: nil)
      let errors: [(Int32, HostError)] = [
        (EAI_NONAME, .unknown(host: "x")), (EAI_AGAIN, .temporary(host: "x")),
        (EAI_FAIL, .failed(host: "x", reason: "Non-recoverable failure in name resolution")),
        (EAI_SYSTEM, .system(host: "x", SystemError(call: "getaddrinfo", number: 0))),
      ]
      for (number, error) in errors {
        let plan = FaultPlan()
        plan.plan(.lookUp, .fails(-number))
        #expect(plan.rule { query.answer() } == .failure(error))
        #expect(plan.isUsedUp)
      }
    }

    @Test("a thread that cannot be created is reported as the look-up's error")
    func noThread() {
      let log = onSocketLoop { loop, log in
        let workers = HostWorkers { $0.answer() }
        let plan = FaultPlan()
        plan.plan(.threadCreate, .fails(EAGAIN))
        plan.rule {
          workers.add(
            HostLookup(HostResolver.Query(host: "localhost", port: 1, family: nil)) { log.write(words($1)) })
        }
        log.write("\(workers.threadCount)")
      }
      #expect(log == "\"localhost\" cannot be looked up: \(SystemError(call: "pthread_create", number: EAGAIN)) 0")
    }
  #endif
}
