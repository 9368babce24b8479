// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

@Suite("Many signals", .timeLimit(.minutes(20)))
struct SignalStressTests {
  @Test(
    "a thousand queued signals from four threads are counted by each source",
    .disabled(if: isSanitizedForThreads, "the thread sanitizer loses some of them"))
  func thousand() {
    let signal = testSignal(10)
    let (otherThread, other) = SourceRig.startLoop()
    SourceRig.onThread { loop in
      let counts = (0..<3).map { _ in Notes<Int>() }
      do {
        let sources = try counts.map { notes in try SignalSource(signal: signal) { _, event in notes.add(event.count) }
        }
        try loop.add(sources[0], forMode: .default)
        try loop.add(sources[1], forMode: .default)
        try other.add(sources[2], forMode: .default)
        let threads = (0..<4).map { _ in
          SourceRig.start {
            for _ in 0..<250 {
              // The kernel's queue may be full temporarily.
              while sigqueue(getpid(), signal, sigval()) != 0 { sched_yield() }
            }
          }
        }
        loop.run { counts[0].all.reduce(0, +) >= 1000 && counts[1].all.reduce(0, +) >= 1000 }
        for thread in threads { thread.join() }
        waitUntil { counts[2].all.reduce(0, +) >= 1000 }
        #expect(counts.map { $0.all.reduce(0, +) } == [1000, 1000, 1000])
        for source in sources { source.invalidate() }
        #expect(crl_signal_is_handled(signal) == 0)
      } catch {
        Issue.record(error)
      }
    }
    other.stop()
    otherThread.join()
  }

  @Test("sources are created and invalidated while their signal is sent")
  func churn() throws {
    let signal = testSignal(11)
    let stays = try SignalSource(signal: signal) { _, _ in }
    let isDone = Notes<Bool>()
    let threads = (0..<2).map { _ in
      SourceRig.start { while isDone.count == 0 { raise(signal) } }
    }
    for _ in 0..<300 {
      let source = try SignalSource(signal: signal) { _, _ in }
      source.invalidate()
    }
    isDone.add(true)
    for thread in threads { thread.join() }
    stays.invalidate()
    #expect(crl_signal_is_handled(signal) == 0)
  }

  @Test("each source has a descriptor, closed when it is invalid")
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      let signal = testSignal(12)
      let before = DescriptorCensus()
      SourceRig.onThread { loop in
        do {
          let sources = try (0..<50).map { _ in try SignalSource(signal: signal) { _, _ in } }
          let held = DescriptorCensus().count("eventfd") - before.count("eventfd")
          #expect((49...50).contains(held))
          for source in sources { try loop.add(source, forMode: .default) }
          raise(signal)
          loop.drain()
          for source in sources { source.invalidate() }
          // The loop has an event descriptor.
          #expect(DescriptorCensus().count("eventfd") <= before.count("eventfd") + 1)
        } catch {
          Issue.record(error)
        }
      }
      let after = DescriptorCensus()
      #expect(before.isFollowed(by: after), "\(before), then \(after)")
    }
  }

  @Test("a forked child gets the former action back and does not disturb its parent")
  func forked() async {
    await #expect(processExitsWith: .exitCode(0)) {
      SourceRig.onThread { loop in
        let signal = testSignal(13)
        do {
          let counts = Notes<Int>()
          let source = try SignalSource(signal: signal) { _, event in counts.add(event.count) }
          try loop.add(source, forMode: .default)
          let child = forkProcess()
          if child == 0 {
            // The default action of a real-time signal ends the process.
            raise(signal)
            _exit(7)
          }
          var status: Int32 = 0
          precondition(waitpid(child, &status, 0) == child)
          precondition(status & 0x7f == signal)
          loop.drain()
          precondition(counts.count == 0)
          raise(signal)
          loop.drain()
          precondition(counts.all == [1])
        } catch {
          preconditionFailure("\(error)")
        }
      }
      exit(0)
    }
  }
}
