// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Foundation
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import Synchronization
import Testing

import class RunLoopCore.RunLoop
import class RunLoopCore.Timer
import class RunLoopThreads.Thread

@Suite("Numbers of loops") struct MetricsTests {
  @Test("a histogram counts in powers of two, and its quantiles are bucket limits")
  func histogram() {
    var histogram = Histogram()
    #expect(histogram.quantile(0.5) == nil)
    for value: Int64 in [-5, 0, 1023, 1024, 2047, 2048, 5_000_000] { histogram.add(value) }
    #expect(histogram.counts[0...2] == [3, 2, 1])
    #expect(histogram.count == 7)
    #expect(histogram.sum == 0 + 1023 + 1024 + 2047 + 2048 + 5_000_000)
    #expect(histogram.quantile(0) == 1024)
    #expect(histogram.quantile(0.5) == 2048)
    #expect(histogram.quantile(1) == 5_000_000)
    histogram.add(.max)
    #expect(histogram.longest == .max)
    #expect(histogram.sum == .max)
    #expect(histogram.quantile(7) == .max)
  }

  @Test("the call-outs of a loop are counted and measured")
  func metrics() async throws {
    await #expect(processExitsWith: .success) {
      try recorded(100) { worker in
        let metrics = try #require(Instruments.metrics(of: worker.runLoop))
        // Includes the two that wait, and those with which a thread starts.
        #expect((102...110).contains(metrics.posted))
        #expect(metrics.waitingBlocks == 0)
        #expect(metrics.items == 1)
        #expect((101...120).contains(metrics.callOuts.count))
        #expect((101...110).contains(metrics.delays.count))
        let busy = try #require(metrics.busy)
        #expect(busy > 0 && busy <= 1)
        let copy = try JSONDecoder().decode(LoopMetrics.self, from: JSONEncoder().encode(metrics))
        #expect(copy == metrics)
      }
    }
  }

  @Test("in the text format each metric family has a type, and labels are escaped")
  func prometheus() async throws {
    await #expect(processExitsWith: .success) {
      try recorded(10) { worker in
        worker.runLoop.label = "a\\b\"c\nd"
        let text = try #require(Instruments.metrics(of: worker.runLoop)).prometheus
        let lines = text.split(separator: "\n")
        #expect(text.contains("runloop_posts_total{loop=\"a\\\\b\\\"c\\nd\"} "))
        let families = Set(lines.filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ")[2] })
        #expect(families.count == 14)
        let sample = try Regex(#"(runloop_[a-z_]+?)(_bucket|_sum|_count)?\{[^}]*\} [0-9.e+-]+"#)
        for line in lines where !line.hasPrefix("#") {
          let match = try #require(try sample.wholeMatch(in: line), "\(line)")
          #expect(families.contains(try #require(match.output[1].substring)), "\(line)")
        }
        let buckets = lines.filter { $0.hasPrefix("runloop_call_out_seconds_bucket{") }
        #expect(buckets.count == 26)
        let values = buckets.map { $0.split(separator: " ").last.flatMap { Int($0) } ?? -1 }
        #expect(values == values.sorted())
        #expect(buckets.last?.contains("le=\"+Inf\"") == true)
        let count = try #require(lines.first { $0.hasPrefix("runloop_call_out_seconds_count{") })
        #expect(count.split(separator: " ").last.flatMap { Int($0) } == values.last)
        #expect(lines.contains { $0.hasPrefix("runloop_delay_seconds_count{") })
      }
    }
  }

  @Test("from level watch on a loop sums its own times, and loses nothing between two readings")
  func sums() async throws {
    await #expect(processExitsWith: .success) {
      let holder = Instruments.hold(.watch)
      defer { holder.release() }
      let worker = try ResidentThread(name: "sums")
      func metrics() throws -> LoopMetrics { try #require(Instruments.metrics(of: worker.runLoop)) }
      try worker.performAndWait {}
      let first = try metrics()
      for _ in 0..<15_000 { worker.runLoop.perform {} }
      let isLong = DispatchSemaphore(value: 0)
      worker.runLoop.perform {
        // As long as a hang, by its own clock.
        while (Instruments.metrics(of: RunLoop.current)?.openCallOut ?? 0) < 260_000_000 {}
        isLong.signal()
      }
      isLong.wait()
      try worker.performAndWait {}
      try worker.performAndWait {}
      let last = try metrics()
      #expect((15_001...15_010).contains(last.callOuts.count - first.callOuts.count))
      // Anything else that is slow on a busy machine counts too.
      let slow = last.callOuts.counts.dropFirst(18).reduce(0, +)
      #expect((1...max(1, slow)).contains(last.hangs - first.hangs))
      #expect(last.callOuts.longest >= 260_000_000)
      #expect(last.callOuts.sum >= 260_000_000)
      #expect(last.busyTime - first.busyTime >= 260_000_000)
      let timer = Timer(timeInterval: 0.001, repeats: false) { _ in usleep(1000) }
      worker.runLoop.add(timer, forMode: .default)
      while timer.isValid { usleep(100) }
      try worker.performAndWait {}
      #expect(try metrics().lateness.count == 1)
      worker.stop()
      _ = try worker.join()
    }
  }

  @Test("the number of hangs never falls, whatever a hanging call-out does")
  func hangsNeverFall() async throws {
    await #expect(processExitsWith: .success) {
      let holder = Instruments.hold(.watch)
      defer { holder.release() }
      let worker = try ResidentThread(name: "hangs")
      try worker.performAndWait {}
      let seen = Mutex<[Int]>([])
      let note: @Sendable () -> Void = {
        let hangs = Instruments.metrics(of: RunLoop.current)?.hangs ?? -1
        seen.withLock { $0.append(hangs) }
      }
      try worker.performAndWait {
        let loop = RunLoop.current
        while (Instruments.metrics(of: loop)?.openCallOut ?? 0) < 260_000_000 {}
        note()
        // A nested run is not part of the hang, and the call-out around it is measured from the nested run's end.
        loop.perform(inModes: ["nested"], block: note)
        _ = loop.run(mode: "nested", for: .zero)
        note()
      }
      let hangs = seen.withLock { $0 }
      #expect(hangs.count == 3 && hangs == hangs.sorted(), "\(hangs)")
      // Other calls that are slow on a busy machine count too.
      #expect(hangs.count == 3 && hangs[1] > hangs[0], "\(hangs)")
      worker.stop()
      _ = try worker.join()
    }
  }

  @Test("a loop is busy while it runs, but not while its thread does other work")
  func notRun() async throws {
    await #expect(processExitsWith: .success) {
      let holder = Instruments.hold(.watch)
      defer { holder.release() }
      let loop = RunLoop.current
      func busyTime() -> Int64 { Instruments.metrics(of: loop)?.busyTime ?? -1 }
      loop.perform {}
      _ = loop.run(mode: .default, for: .zero)
      let first = busyTime()
      #expect(first > 0)
      for _ in 0..<100_000 { sched_yield() }
      #expect(busyTime() == first)
    }
  }

  @Test("shared metrics distinguish loops of the same name by thread, and a loop's own metrics do not")
  func twins() async throws {
    await #expect(processExitsWith: .success) {
      let workers = try (0..<2).map { _ in try ResidentThread(name: "twin") }
      let metrics = try workers.map { try #require(Instruments.metrics(of: $0.runLoop)) }
      let text = LoopMetrics.prometheus(metrics)
      for one in metrics { #expect(text.contains("runloop_queue{loop=\"twin\",tid=\"\(one.thread)\"} ")) }
      #expect(!text.contains("runloop_queue{loop=\"twin\"}"))
      #expect(metrics[1].prometheus.contains("runloop_queue{loop=\"twin\"} "))
      for worker in workers {
        worker.stop()
        _ = try worker.join()
      }
    }
  }

  @Test("a timer that fires within its tolerance is not late")
  func tolerance() async throws {
    await #expect(processExitsWith: .success) {
      let holder = Instruments.hold(.watch)
      defer { holder.release() }
      let loop = RunLoop.current
      loop.perform {}
      _ = loop.run(mode: .default, for: .zero)
      let patient = Timer(timeInterval: 0.001, repeats: false) { _ in }
      patient.tolerance = 3600
      let exact = Timer(timeInterval: 0.02, repeats: false) { _ in }
      for timer in [patient, exact] { loop.add(timer, forMode: .default) }
      while exact.isValid || patient.isValid { _ = loop.run(mode: .default, for: .seconds(3600)) }
      let lateness = try #require(Instruments.metrics(of: loop)).lateness
      #expect(lateness.count == 2)
      #expect(lateness.counts.first ?? 0 >= 1, "\(lateness)")
    }
  }

  @Test("the clock is chosen once, and a process that was only watched has recorded nothing")
  func clock() async throws {
    await #expect(processExitsWith: .success) {
      let path = "/dev/shm/runloop-tests-\(UUID().uuidString)"
      defer { unlink(path) }
      let watching = Instruments.hold(.watch)
      defer { watching.release() }
      let worker = try ResidentThread(name: "clock")
      try worker.performAndWait {}
      let chosen = crl_times_first().ticks
      #expect(chosen != 0)
      #expect(throws: InstrumentsError.nothingRecorded) { try Instruments.writeRecord(to: path, last: .seconds(1)) }
      let recording = Instruments.hold(.record)
      defer { recording.release() }
      try worker.performAndWait {}
      try worker.performAndWait {}
      #expect(crl_times_first().ticks == chosen)
      try Instruments.writeRecord(to: path, last: .seconds(3600))
      worker.stop()
      _ = try worker.join()
    }
  }

  @Test("raising the level during a run leaves the frame of the run in place")
  func frame() async throws {
    await #expect(processExitsWith: .success) {
      let worker = try ResidentThread(name: "frame")
      let loop = UInt64(UInt(bitPattern: Unmanaged.passUnretained(worker.runLoop).toOpaque()))
      func frame() throws -> UInt64 {
        let board = try #require(crl_board_get())
        let faces = UnsafeRawPointer(board) + MemoryLayout<crl_board>.offset(of: \.faces)!
        return try #require(
          (0..<Int(CRL_FACES)).map { faces.load(fromByteOffset: $0 * 128, as: crl_face.self) }.first { $0.loop == loop }
        ).stack
      }
      try worker.performAndWait {}
      let before = try frame()
      let holder = Instruments.hold(.watch)
      defer { holder.release() }
      try worker.performAndWait {}
      try worker.performAndWait {}
      #expect(Instruments.metrics(of: worker.runLoop)?.callOuts.count ?? 0 > 0)
      #expect(before != 0)
      #expect(try frame() == before)
      worker.stop()
      _ = try worker.join()
    }
  }

  @Test("measured call-outs stay counted when their records are overwritten, and none is counted twice")
  func cumulative() async throws {
    await #expect(processExitsWith: .success) {
      try recorded(0) { worker in
        func metrics() throws -> LoopMetrics { try #require(Instruments.metrics(of: worker.runLoop)) }
        // All in one go, as a sleep between two blocks would need a record too.
        func call(_ blocks: Int) throws {
          let isPosted = DispatchSemaphore(value: 0)
          worker.runLoop.perform { isPosted.wait() }
          for _ in 0..<blocks { worker.runLoop.perform {} }
          isPosted.signal()
          try worker.performAndWait {}
          try worker.performAndWait {}
        }
        try call(1500)
        let first = try metrics()
        #expect(first.callOuts.count >= 1500 && first.callOuts.count < 1600)
        // The last call-out may have ended since.
        let again = try metrics()
        #expect(again.callOuts.count - first.callOuts.count <= 1)
        #expect(again.delays.count == first.delays.count)
        try call(1500)
        let last = try metrics()
        #expect(last.callOuts.count >= 3000 && last.callOuts.count < 3200)
        #expect(last.delays.count >= 3000)
        #expect(zip(last.callOuts.counts, first.callOuts.counts).allSatisfy { $0 >= $1 })
      }
    }
  }

  @Test("a loop keeps its label, and falls back on its thread's name")
  func label() async {
    // Needs a process with few loops, because beyond a limit loops have no numbers.
    await #expect(processExitsWith: .success) {
      let worker = try ResidentThread(name: "labelled")
      let loop = worker.runLoop
      #expect(loop.label == nil)
      try worker.performAndWait {}
      #expect(Instruments.loops.first { $0.name == "labelled" }?.label == "labelled")
      loop.label = "decoder"
      #expect(loop.label == "decoder")
      let snapshot = try #require(Instruments.loops.first { $0.label == "decoder" })
      #expect(snapshot.name == "labelled")
      worker.stop()
      _ = try worker.join()
      #expect(loop.label == nil)
      loop.label = "late"
      #expect(loop.label == nil)
      #expect(Instruments.metrics(of: loop) == nil)
    }
  }

  @Test("the reasons that keep a loop alive are values, with the callers that added the items")
  func reasons() async {
    // As above.
    await #expect(processExitsWith: .success) {
      let holder = Instruments.hold(.watch)
      defer { holder.release() }
      let worker = try ResidentThread(name: "reasons")
      let timer = Timer(timeInterval: 60, repeats: true) { _ in }
      worker.runLoop.add(timer, forMode: .default)
      while !worker.runLoop.isWaiting { usleep(100) }
      let reasons = Instruments.reasons(keeping: worker.runLoop)
      #expect(reasons.map(\.kind.rawValue).sorted() == ["resident", "timer"])
      let first = try #require(reasons.first { $0.kind == .timer })
      #expect(first.item == UInt64(UInt(bitPattern: Unmanaged.passUnretained(timer).toOpaque())))
      #expect(first.modes == ["kCFRunLoopDefaultMode"])
      #expect(first.detail.hasPrefix("every 60 s, next in "))
      #expect(first.code?.image != nil)
      #expect(!first.addedAt.isEmpty)
      let copy = try JSONDecoder().decode([KeepAliveReason].self, from: JSONEncoder().encode(reasons))
      #expect(copy == reasons)
      // An interval that never passes says nothing.
      let moved = Timer(timeInterval: 1e9, repeats: true) { _ in }
      moved.park()
      worker.runLoop.add(moved, forMode: .default)
      let details = Instruments.reasons(keeping: worker.runLoop).map(\.detail)
      #expect(details.contains("at dates that are set, has no date"))
      moved.invalidate()
      // Removed items are forgotten, and so is where they were added.
      timer.invalidate()
      #expect(Instruments.reasons(keeping: worker.runLoop).map(\.kind) == [.resident])
      worker.stop()
      _ = try worker.join()
      #expect(Instruments.reasons(keeping: worker.runLoop).isEmpty)
    }
  }

  @Test("the tool reads the flight recorder's file, which holds what began in the requested time")
  func flightRecorder() async throws {
    await #expect(processExitsWith: .success) {
      let path = "/dev/shm/runloop-tests-\(UUID().uuidString)"
      defer { unlink(path) }
      try recorded(200) { worker in
        try Instruments.writeRecord(to: path, last: .seconds(3600))
        let session = runloop("postmortem", path, "--json")
        #expect(session.status == 0, "\(session.complaints)")
        let threads = try #require(try session.json()["threads"] as? [[String: Any]])
        let own = try #require(threads.first { $0["thread"] as? String == "metrics of 200 blocks" })
        #expect((own["last"] as? [[String: Any]])?.count ?? 0 >= 200)
        #expect(own["torn"] as? Int == 0)

        try Instruments.writeRecord(to: path, last: .zero)
        let empty = try #require(try runloop("postmortem", path, "--json").json()["threads"] as? [[String: Any]])
        let before = empty.first { $0["thread"] as? String == "metrics of 200 blocks" }
        #expect((before?["last"] as? [[String: Any]])?.isEmpty ?? true)

        #expect(throws: InstrumentsError.self) { try Instruments.writeRecord(to: "/nowhere/at/all", last: .zero) }
        symlink("/dev/null", path + "-link")
        defer { unlink(path + "-link") }
        #expect(throws: InstrumentsError.self) { try Instruments.writeRecord(to: path + "-link", last: .zero) }
      }
    }
  }
}

/// Runs `body` with a resident thread that records and has called some blocks.
///
/// Needs its own process, because the test process has more loops than leave records.
private func recorded(_ blocks: Int, _ body: (ResidentThread) throws -> Void) throws {
  let holder = Instruments.hold(.record)
  defer { holder.release() }
  let worker = try ResidentThread(name: "metrics of \(blocks) blocks")
  for _ in 0..<blocks { worker.runLoop.perform {} }
  try worker.performAndWait {}
  // The end of the last call-out is recorded when another begins.
  try worker.performAndWait {}
  try body(worker)
  worker.stop()
  _ = try worker.join()
}
