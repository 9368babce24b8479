// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Glibc
  import TestRules
  import Testing

  import TestSupport

  @testable import RunLoopCore

  @Suite("The sender's cost of a message", .timeLimit(.minutes(20)))
  struct PortWakeTests {
    /// Counts the wake calls that this thread makes during `body`, to sleepers on a futex and in an epoll set.
    private func wakeCalls(_ body: () -> Void) -> [Int] {
      let plan = FaultPlan()
      plan.rule(body)
      return [plan.counts[.futexWake] ?? 0, plan.counts[.eventWrite] ?? 0]
    }

    @Test("a message to a sleeping loop makes one wake call, however many follow", .rule(.m3))
    func asleep() throws {
      let pipe = try RawPipe()
      for watches in [false, true] {
        let received = Box(0)
        let isDone = Box(false)
        let port = Port { port, _ in
          received.value += 1
          // The receiver stays awake until all messages have been sent.
          waitUntil { isDone.value }
        }
        let running = RunningLoop { loop, _ in
          loop.add(port, forMode: .default)
          if watches { loop.watch(pipe.reading) }
        }
        running.loop.awaitSleep(watches ? .epoll : .futex)
        let first = wakeCalls { port.post(1) }
        #expect(first == (watches ? [0, 1] : [1, 0]))
        waitUntil { received.value != 0 }
        let others = wakeCalls { for id in 2...100 { port.post(id) } }
        #expect(others == [0, 0])
        isDone.value = true
        waitUntil { port.waitingMessageCount == 0 }
        running.loop.stop()
        #expect(running.result() == "stopped")
        #expect(received.value == 100)
      }
    }

    @Test("a message to the sender's own loop makes no wake call", .rule(.m3))
    func own() {
      let calls = onVirtualTime { _, loop in
        let port = Port { _, _ in }
        loop.add(port, forMode: .default)
        loop.add(port, forMode: "A")
        return wakeCalls { for id in 1...10 { port.post(id) } }
      }
      #expect(calls == [0, 0])
    }

    @Test("a receiver makes no wake call if no sender waits for room", .rule(.m3))
    func receiver() {
      let calls = onVirtualTime { _, loop in
        let port = Port { _, _ in }
        loop.add(port, forMode: .default)
        for id in 1...10 { port.post(id) }
        return wakeCalls { loop.run(mode: .default, for: .milliseconds(1)) }
      }
      #expect(calls == [0, 0])
    }
  }
#endif
