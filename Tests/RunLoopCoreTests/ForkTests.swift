// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import Glibc
import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// Each test forks in its own process, which has few threads.
///
/// The thread sanitizer's locks and threads do not survive a fork.
@Suite("Forked children", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct ForkTests {
  @Test("a child has a loop of its own, which is its main loop, and which runs", .rule(.r113, .m17))
  func ownLoop() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      let main = RunLoop.main
      let ends = onVirtualTime { _, parent in
        (0..<20).map { _ in
          inForkedChild {
            let loop = RunLoop.current
            guard loop !== parent, loop !== main else { return 1 }
            guard loop === RunLoop.main, loop === RunLoop.current, loop.currentMode == nil else { return 2 }
            let log = Log()
            pipe.write()
            loop.perform { log.write("B") }
            loop.after(.zero) { _ in log.write("T") }
            loop.watch(pipe.reading) { source, _ in
              log.write("D\(pipe.read())")
              source.invalidate()
            }
            loop.run(log, for: .unlimited)
            return log.text == "B T D[7] finished" ? 0 : 3
          }
        }
      }
      #expect(ends == Array(repeating: .exited(0), count: 20), "\(ends)")
    }
  }

  @Test("a child's activity is not attributed to its parent's thread", .rule(.r113))
  func cause() async {
    await #expect(processExitsWith: .success) {
      let end = onVirtualTime { _, _ in
        guard crl_cause() != 0 else { return ForkedEnd.exited(1) }
        return inForkedChild { crl_cause() == UInt64(1) << 63 | UInt64(getpid()) ? 0 : 2 }
      }
      #expect(end == .exited(0))
    }
  }

  @Test("the child of a child has a loop of its own again", .rule(.r113, .m17))
  func grandchild() async {
    await #expect(processExitsWith: .success) {
      let end = onVirtualTime { _, parent in
        inForkedChild {
          let loop = RunLoop.current
          let end = inForkedChild {
            guard RunLoop.current !== loop, RunLoop.current !== parent else { return 1 }
            let log = Log()
            RunLoop.current.perform { log.write("B") }
            RunLoop.current.run(log, for: .zero)
            return log.text == "B timedOut" ? 0 : 2
          }
          return end == .exited(0) && loop === RunLoop.current ? 0 : 3
        }
      }
      #expect(end == .exited(0), "\(end)")
    }
  }

  @Test("a main loop whose thread has ended rejects everything", .rule(.r61, .m21))
  func mainThreadEnds() async {
    await #expect(processExitsWith: .success) {
      let end = onVirtualTime { _, _ in
        // The only thread of a child is its main thread.
        inForkedChild {
          let main = RunLoop.current
          guard main === RunLoop.main else { return 1 }
          _ = startThread {
            waitUntil { main.hasEnded }
            let refuses = !main.perform {} && !main.add(RunLoop.Source {}, forMode: .default) && main === RunLoop.main
            main.wakeUp()
            main.stop()
            _exit(refuses && main.statistics.rejectionCount == 2 ? 0 : 2)
          }
          pthread_exit(nil)
        }
      }
      #expect(end == .exited(0), "\(end)")
    }
  }

  @Test("a child that uses a loop of its parent is stopped with a message", .rule(.m17))
  func parentsLoop() async throws {
    let uses = 12
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let pipe = try RawPipe()
      let main = RunLoop.main
      let ends = onVirtualTime { _, loop in
        let source = loop.keepAlive()
        let timer = loop.after(.seconds(1)) { _ in }
        let descriptor = loop.watch(pipe.reading)
        let uses: [@Sendable () -> Void] = [
          { loop.perform {} }, { loop.perform(inModes: ["a"]) {} }, { loop.wakeUp() }, { loop.stop() },
          { loop.stop(mode: .default) }, { loop.add(RunLoop.Source {}, forMode: .default) },
          { loop.watch(pipe.reading) }, { _ = loop.contains(timer, forMode: .default) }, { source.signal() },
          { timer.invalidate() }, { descriptor.invalidate() }, { main.perform {} },
        ]
        return uses.map { use in
          inForkedChild {
            use()
            return 0
          }
        }
      }
      #expect(ends.count == 12)
      #expect(ends.allSatisfy { $0.isTrap }, "\(ends)")
    }
    #if DEBUG
      let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
      #expect(text.split(separator: "\n").count { $0.contains("of the process that it was forked from") } == uses)
    #endif
  }

  @Test("a child cannot run a loop of its parent", .rule(.r18, .m17))
  func runsParentsLoop() async {
    await #expect(processExitsWith: .success) {
      let end = onVirtualTime { _, loop in
        loop.keepAlive()
        return inForkedChild {
          loop.run(mode: .default, for: Duration.zero)
          return 0
        }
      }
      #expect(end.isTrap, "\(end)")
    }
  }

  @Test("a child cannot service its parent's guest, which continues in the parent", .rule(.m17, .m28))
  func parentsGuest() async {
    await #expect(processExitsWith: .success) {
      let log = host { _, loop, guest, log in
        guest.turn(log)
        let end = inForkedChild {
          guest.service()
          return 0
        }
        log.write("\(end.isTrap) \(guest.isReadable)")
        loop.perform { log.write("B") }
        guest.turn(log)
      }
      #expect(log == "| E BT BS BW finished true false | AW BT BS B BW finished X")
    }
  }

  @Test("a child that returns into its parent's run is stopped before any call-out", .rule(.m17))
  func goesOn() async {
    await #expect(processExitsWith: .success) {
      let child = Box<pid_t?>(nil)
      let log = record { time, loop, log in
        loop.keepAlive()
        loop.after(.milliseconds(10)) { _ in
          // Only the parent may get here.
          if child.value == 0 { _exit(0) }
          log.write("T")
          loop.stop()
        }
        loop.perform { child.value = forkProcess() }
        loop.run(log)
      }
      #expect(log == "E BT BS BW AW T X stopped")
      let end = ForkedEnd(waitingFor: try #require(child.value))
      #expect(end.isTrap, "\(end)")
    }
  }

  @Test("a loop continues after a fork, whatever the child does with shared open files", .rule(.m17))
  func parentGoesOn() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      let log = record { time, loop, log in
        pipe.write()
        loop.watch(pipe.reading) { _, _ in
          log.write("D")
          pipe.read()
        }
        loop.after(.milliseconds(20)) { _ in log.write("T") }
        // The block posts another one, so the pass only polls.
        loop.perform {
          let end = inForkedChild {
            // The child watches the same descriptor, is notified, and invalidates its source without reading.
            let child = RunLoop.current
            child.watch(pipe.reading) { source, _ in source.invalidate() }
            child.wakeUp()
            return child.run(mode: .default, for: Duration.unlimited) == .finished ? 0 : 1
          }
          log.write("\(end)")
          loop.perform { log.write("B") }
        }
        loop.run(log)
      }
      #expect(log == "E BT BS exited(0) BW AW D B BT BS BW AW T BT BS BW AW X timedOut")
    }
  }

  @Test("a loop that sleeps in another thread during a fork is woken as usual", .rule(.m17))
  func sleeperGoesOn() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      let sleepers: [RunningLoop] = [
        RunningLoop { loop, _ in loop.keepAlive() }, RunningLoop { loop, _ in loop.watch(pipe.reading) },
      ]
      sleepers[0].loop.awaitSleep(.futex)
      sleepers[1].loop.awaitSleep(.epoll)
      let ends = (0..<20).map { _ in
        inForkedChild { RunLoop.current.run(mode: .default, for: Duration.zero) == .finished ? 0 : 1 }
      }
      #expect(ends == Array(repeating: .exited(0), count: 20), "\(ends)")
      for sleeper in sleepers {
        sleeper.loop.perform {
          sleeper.log.write("B")
          sleeper.loop.stop()
        }
        #expect(sleeper.result() == "B stopped")
      }
    }
  }

  @Test("a child can create its loop even if its parent's threads were creating theirs at the fork", .rule(.m17))
  func underFire() async {
    await #expect(processExitsWith: .success) {
      @Sendable func runBlock() -> Int32 {
        let log = Log()
        RunLoop.current.perform { log.write("B") }
        RunLoop.current.run(log, for: .zero)
        return log.text == "B timedOut" ? 0 : 1
      }
      // Initializes the runtime first, because its own locks do not survive a fork.
      onVirtualTime { _, loop in _ = loop.keepAlive() }
      #expect(onNewThread { runBlock() } == 0)
      let isOver = Atomic<Bool>(false)
      let maker = startThread {
        while !isOver.load(ordering: .relaxed) { onVirtualTime { _, loop in _ = loop.keepAlive() } }
      }
      let ends = (0..<50).map { _ in inForkedChild { runBlock() } }
      isOver.store(true, ordering: .relaxed)
      maker.result()
      #expect(ends == Array(repeating: .exited(0), count: 50), "\(ends)")
    }
  }

  @Test("no fork happens while another thread prevents it, and that thread can fork itself", .rule(.m17))
  func prevented() async {
    await #expect(processExitsWith: .success) {
      // Installs the handlers.
      _ = RunLoop.current
      let isWorking = Atomic<Bool>(false)
      let isOver = Atomic<Bool>(false)
      let worker = startThread {
        while !isOver.load(ordering: .relaxed) {
          crl_fork_prevent()
          isWorking.store(true, ordering: .relaxed)
          for _ in 0..<100 { sched_yield() }
          isWorking.store(false, ordering: .relaxed)
          crl_fork_allow()
          sched_yield()
        }
        crl_fork_prevent()
        defer { crl_fork_allow() }
        return inForkedChild { 0 }
      }
      waitUntil { isWorking.load(ordering: .relaxed) }
      let ends = (0..<100).map { _ in inForkedChild { isWorking.load(ordering: .relaxed) ? 1 : 0 } }
      isOver.store(true, ordering: .relaxed)
      #expect(ends == Array(repeating: .exited(0), count: 100), "\(ends)")
      #expect(worker.result() == .exited(0))
    }
  }

  @Test("a child's main loop does not wait for the main dispatch queue", .rule(.r110, .m17))
  func mainQueue() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      let end = inForkedChild {
        let loop = RunLoop.main
        guard loop.pollSet() == nil, loop.run(mode: .default, for: Duration.unlimited) == .finished else { return 1 }
        return 0
      }
      #expect(end == .exited(0), "\(end)")
    }
  }
}
