// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Effects of a thread's end", .timeLimit(.minutes(20)))
struct ThreadEndTests {
  @Test("awaiting a thread's end resumes after its cancel call-outs and releases, like a join", .rule(.r115))
  func finished() async throws {
    for _ in 0..<20 {
      let log = Log()
      let thread = try ResidentThread(onStop: { log.write("stop") })
      let attached = thread.thread
      let waiter = Task {
        let report = await thread.finished()
        log.write("finished")
        return report
      }
      try thread.performAndWait {
        let token = Token(log)
        let source = RunLoop.Source(cancel: { _, _ in log.write("cancel") }, perform: { token.touch() })
        RunLoop.current.add(source, forMode: .default)
      }
      _ = attached.attachment { Token { log.write("attachment") } }
      // Nothing indicates whether the task already waits.
      for _ in 0..<100 { await Task.yield() }
      thread.stop(.immediately)
      let report = await waiter.value
      #expect(log.text == "stop cancel released attachment finished")
      #expect(report == thread.counts)
    }
  }

  @Test(
    "a thread may call exit in a call-out at its end, and the rest of the end still happens", .rule(.r115))
  func exitAtEnd() throws {
    let log = Log()
    let thread = Thread {
      for name in ["a", "b"] {
        let source = RunLoop.Source(cancel: { _, _ in
          log.write("cancel")
          Thread.exit()
        }) {}
        RunLoop.current.add(source, forMode: RunLoop.Mode(rawValue: name))
      }
      RunLoop.current.perform(inModes: ["never"]) { log.write("ran") }
    }
    let loop = try #require(thread.runLoop)
    _ = thread.attachment { Token { log.write("attachment") } }
    thread.start()
    try thread.join()
    #expect(log.text == "cancel cancel attachment" && loop.hasEnded && loop.statistics.droppedBlockCount == 1)
    let resident = try ResidentThread(onStop: {
      log.write("stop")
      Thread.exit()
    })
    resident.stop()
    try resident.join()
    #expect(log.text == "cancel cancel attachment stop" && resident.state == .finished)
  }

  @Test("the loop of a never started thread ends with the thread's object", .rule(.r115, .m14))
  func neverStarted() throws {
    let log = Log()
    var thread: Thread? = Thread {}
    let loop = try #require(thread?.runLoop)
    let source = WeakBox(loop.keepAlive(.common))
    let timer = WeakBox(loop.every(.seconds(1000)) { [token = Token(log)] _ in token.touch() })
    loop.perform { [token = Token(log)] in token.touch() }
    loop.perform(inModes: ["a", "b"]) { [token = Token(log)] in token.touch() }
    let cancelling = RunLoop.Source(cancel: { loop, _ in log.write("cancel:\(loop.perform {} as Bool)") }) {}
    loop.add(cancelling, forMode: .default)
    #expect(log.text == "")
    thread = nil
    #expect(log.text.contains("cancel:true") && log.text.split(separator: " ").count { $0 == "released" } == 3)
    #expect(loop.hasEnded && loop.statistics.droppedBlockCount == 3)
    #expect(source.object == nil && timer.object == nil && cancelling.isValid)
  }

  @Test("many threads that are never started leave nothing behind", .rule(.r115))
  func manyNeverStarted() {
    let releases = Counter()
    for _ in 0..<1000 {
      let loop = Thread {}.runLoop
      #expect(loop == nil || loop?.hasEnded == true)
      let thread = Thread {}
      let token = Token { releases.add() }
      let source = RunLoop.Source { token.touch() }
      thread.runLoop?.add(source, forMode: .common)
    }
    #expect(releases.value == 1000)
  }

  @Test("a forked child has its own thread objects", .rule(.r113, .m17), .disabled(if: isSanitizedForThreads))
  func forked() async {
    await #expect(processExitsWith: .success) {
      let ends = onNewThread {
        let (parent, main) = (Thread.current, Thread.main)
        let resident = ResidentThread.shared("shared")
        // If a fork happens while that thread holds a lock of the runtime, during the first use of a feature, the
        // child deadlocks.
        for _ in 0..<3 {
          try? resident.performAndWait {}
          while !resident.runLoop.isWaiting { sched_yield() }
        }
        return [
          inForkedChild {
            let current = Thread.current
            guard current !== parent, current !== main, current === Thread.main else { return 1 }
            guard current.isMainThread, current.isExecuting, Thread.isMainThread else { return 2 }
            let log = Log()
            do {
              try current.perform { log.write("performed") }
              guard RunLoop.current.run(mode: .default, for: .zero) != .stopped, log.text == "performed" else {
                return 3
              }
              // The shared threads are the child's own.
              let shared = ResidentThread.shared("shared")
              guard shared !== resident, try shared.performAndWait({ Thread.current === shared.thread }) else {
                return 4
              }
              let thread = Thread { log.write("other") }
              thread.start()
              try thread.join()
            } catch {
              return 5
            }
            return log.text == "performed other" ? 0 : 6
          },
          // The thread exits before the child has asked.
          inForkedChild {
            _ = startThread {
              waitUntil { Thread.main.isFinished }
              do { try Thread.main.perform {} } catch { _exit(error as? ThreadError == .mainThreadHasLeft ? 0 : 7) }
              _exit(8)
            }
            pthread_exit(nil)
          },
        ]
      }
      #expect(ends == [.exited(0), .exited(0)], "\(ends)")
    }
  }

  @Test(
    "a forked child that waits for a thread of its parent is stopped", .rule(.r113, .m17),
    .disabled(if: isSanitizedForThreads))
  func waitInForkedChild() async {
    await #expect(processExitsWith: .success) {
      let ends = onNewThread {
        let hold = Hold()
        let thread = Thread.started { hold.occupy() }
        hold.begun.wait()
        let end = inForkedChild {
          try thread.join()
          return 0
        }
        hold.released.open()
        return [end]
      }
      #expect(ends.first?.isTrap == true, "\(ends)")
    }
  }

  @Test(
    "a forked child may release the handles of its parent's threads", .rule(.r113, .m17),
    .disabled(if: isSanitizedForThreads))
  func releaseInForkedChild() async {
    await #expect(processExitsWith: .success) {
      let ends = onNewThread {
        var resident = try? ResidentThread()
        while let thread = resident, !thread.runLoop.isWaiting { sched_yield() }
        let end = inForkedChild {
          resident = nil
          return 0
        }
        var answer: Int32 = 0
        do { answer = try resident?.performAndWait { 7 } ?? 0 } catch {}
        return [end, .exited(answer)]
      }
      #expect(ends == [.exited(0), .exited(7)], "\(ends)")
    }
  }
}

@Suite("Programs with an async main", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct AsyncMainTests {
  private static let reason = """
    the main thread has left, as in every program with an `async` main, and nothing can run on it: give the program a `main` \
    that is not `async`, and call `MainLoop.run` in it; a test of Swift Testing, whose runner has such a main, runs its \
    body in `VirtualTime.asMain` of RunLoopTesting, or is an XCTestCase
    """
  private static let answers = """
    perform false, add false, ended true
    true
    finished true, main true, loop true
    \(reason)
    true
    true
    joined

    """

  @Test("the main thread's loop and object reject work once the thread has left", .rule(.m14, .m21))
  func late() throws {
    let (status, output) = try runProgram("async-main", ["late"])
    #expect(status == 0 && output == Self.answers, "\(status) \(output)")
  }

  @Test("a main loop that was used earlier ends on its thread when that leaves", .rule(.r115, .m14))
  func early() throws {
    let (status, output) = try runProgram("async-main", ["early"])
    let begin = "object: true\ncancel on main: true\nloop: true, dropped 1\n"
    #expect(status == 0 && output == begin + Self.answers, "\(status) \(output)")
  }

  @Test("waiting for a main thread that has left returns at once", .rule(.m14))
  func waiting() throws {
    let (status, output) = try runProgram("async-main", ["waiting"])
    // The work may have been accepted earlier.
    let possible = [Self.reason, "the main thread ended before the work had run"].map { "wait: \($0)\n" }
    #expect(status == 0 && possible.contains(output), "\(status) \(output)")
  }
}
