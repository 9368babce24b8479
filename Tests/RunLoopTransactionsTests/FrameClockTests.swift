// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("The frame clock", .timeLimit(.minutes(20)))
struct FrameClockTests {
  /// Runs a loop with a pipeline and a frame interval of 16 ms, and returns the times of the commits.
  private func commits(
    until end: Double = 0.500, interval: Duration = .milliseconds(16),
    _ body: @escaping @Sendable (SteppedTime, RunLoop, CommitPipeline) -> Void
  ) -> [Int] {
    onVirtualTime { time, loop in
      let times = Box<[Int]>([])
      let pipeline = CommitPipeline(loop: loop, frameInterval: interval)
      pipeline.add(.init(name: "commit") { times.update { $0.append(time.milliseconds) } })
      body(time, loop, pipeline)
      loop.keepAlive()
      loop.run(mode: .default, for: end)
      return times.value
    }
  }

  @Test("the first commit after a rest happens at once, and the next one after the interval")
  func pace() {
    let times = commits { _, loop, pipeline in
      for delay in [5, 6, 7, 50, 100, 115, 117] {
        loop.after(.milliseconds(delay)) { _ in pipeline.setNeedsCommit() }
      }
    }
    #expect(times == [5, 21, 50, 100, 116, 132])
  }

  @Test("a commit that waited for its interval happens in order, before the wait")
  func paceInOrder() {
    let log = Log()
    _ = commits { time, loop, pipeline in
      loop.add(
        RunLoop.Observer(activities: [.beforeWaiting, .afterWaiting]) { _, activity in time.stamp(log, activity.letter)
        },
        forMode: .default)
      pipeline.whenCommitted { _ in
        pipeline.setNeedsCommit()
        pipeline.whenCommitted { time.stamp(log, "\($0.cause)") }
      }
      loop.once(.entry) { pipeline.setNeedsCommit() }
    }
    #expect(log.text == "BW0 AW0 BW0 AW16 BW16 beforeWaiting16 AW500")
  }

  @Test("a source that signals itself in every pass does not prevent commits")
  func busySource() {
    let times = commits { time, loop, pipeline in
      let source = RunLoop.Source { source in
        time.advance(by: .milliseconds(1))
        pipeline.setNeedsCommit()
        source.signal()
      }
      loop.add(source, forMode: .default)
      source.signal()
    }
    #expect((20...31).contains(times.count), "\(times)")
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 16 && $1 - $0 <= 18 }, "\(times)")
    #expect(times.first.map { $0 <= 19 } == true)
  }

  @Test("a block that schedules itself in every pass gets one commit per interval")
  func busyBlock() {
    let times = commits { time, loop, pipeline in
      @Sendable func work() {
        time.advance(by: .milliseconds(1))
        pipeline.setNeedsCommit()
        loop.perform { work() }
      }
      loop.perform { work() }
    }
    #expect((20...32).contains(times.count), "\(times)")
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 16 && $1 - $0 <= 18 }, "\(times)")
    #expect(times.first == 1)
  }

  @Test("a busy loop's commit deadline counts from the mark, and the commit reports that")
  func deadline() {
    let log = Log()
    _ = commits { time, loop, pipeline in
      let source = RunLoop.Source { source in
        time.advance(by: .milliseconds(1))
        if time.milliseconds == 40 {
          pipeline.setNeedsCommit()
          pipeline.whenCommitted { time.stamp(log, "\($0.cause)") }
        }
        source.signal()
      }
      loop.add(source, forMode: .default)
      source.signal()
    }
    #expect(log.text == "deadline57" || log.text == "deadline58", "\(log.text)")
  }

  @Test("without a frame interval each turn commits")
  func noInterval() {
    for interval in [Duration.zero, .seconds(-1), .seconds(Int64.min), Duration(attoseconds: .min)] {
      let times = commits(interval: interval) { _, loop, pipeline in
        for delay in [5, 6, 7] { loop.after(.milliseconds(delay)) { _ in pipeline.setNeedsCommit() } }
      }
      #expect(times == [5, 6, 7])
    }
  }

  @Test("a flush begins a frame interval")
  func flush() {
    let times = commits { _, loop, pipeline in
      loop.after(.milliseconds(5)) { _ in
        pipeline.setNeedsCommit()
        pipeline.flush()
      }
      loop.after(.milliseconds(6)) { _ in pipeline.setNeedsCommit() }
    }
    #expect(times == [5, 21])
  }

  @Test("the frame clock continues in every common mode")
  func commonModes() {
    let log = Log()
    onVirtualTime { time, loop in
      #expect(failure { () throws(RunLoopError) in try loop.addCommonMode(.tracking) } == nil)
      let pipeline = CommitPipeline(loop: loop)
      pipeline.add(.init(name: "commit") { time.stamp(log, "commit") })
      pipeline.setNeedsCommit()
      loop.run(mode: .default, for: 0)
      pipeline.setNeedsCommit()
      loop.run(mode: .tracking, for: 0.1)
    }
    #expect(log.text == "commit0 commit16")
  }
}
