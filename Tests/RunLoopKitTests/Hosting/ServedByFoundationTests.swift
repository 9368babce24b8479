// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

/// This package's loop inside Foundation's, however that is run.
@Suite("A loop that Core Foundation's serves", .timeLimit(.minutes(20)))
struct ServedByFoundationTests {
  @Test(
    "runs of Foundation's loop serve our timers, blocks, signalled sources, messages and descriptors", .rule(.m28))
  func everything() throws {
    let pipe = try RawPipe()
    let log = served { log, loop in
      let port = Port { _, message in log.write("M\(message.id)") }
      loop.add(port, forMode: .common)
      let source = RunLoop.Source { log.write("S") }
      loop.add(source, forMode: .default)
      try loop.add(
        RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
          log.write("D\(pipe.read().first ?? 0)")
        },
        forMode: .default)
      // Each step begins after the previous one was observed.
      let steps: [(begin: @Sendable () -> Void, seen: String)] = [
        ({ loop.perform { log.write("B") } }, "B"),
        ({ loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in log.write("T") }, forMode: .default) }, "T"),
        (
          {
            source.signal()
            loop.wakeUp()
          }, "S"
        ),
        ({ _ = port.send(before: .distantFuture, msgid: 7, components: nil, from: nil, reserved: 0) }, "M7"),
        ({ pipe.write([5]) }, "D5"),
      ]
      for step in steps {
        step.begin()
        runFoundation { log.count(of: step.seen) > 0 }
        log.write("|")
        let thread = Thread { step.begin() }
        thread.start()
        runFoundation { log.count(of: step.seen) > 1 }
        try thread.join()
      }
      port.invalidate()
    }
    #expect(log == "B | B T | T S | S M7 | M7 D5 | D5")
  }

  @Test("our timers fire while the thread waits for a process", .rule(.m28), arguments: [false, true])
  func process(inCallOut: Bool) {
    let log = onNewThread {
      let log = Log()
      let loop = RunLoop.current
      @Sendable func wait() {
        do {
          // The process ends when its input does, which a timer of this package closes.
          let process = Process()
          process.executableURL = URL(fileURLWithPath: "/bin/cat")
          var ends: [Int32] = [0, 0]
          // Keeps children that other tests start meanwhile from inheriting the writing end.
          try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
          let writing = ends[1]
          process.standardInput = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
          try loop.servedByCoreFoundation {
            try process.start()
            loop.add(
              Timer(timeInterval: 0.001, repeats: true) { timer in
                log.write("T")
                guard log.count(of: "T") == 3 else { return }
                timer.invalidate()
                close(writing)
              }, forMode: .default)
            process.waitUntilExit()
          }
          log.write("exit \(process.terminationStatus)")
        } catch {
          log.write("\(error)")
        }
      }
      if inCallOut {
        loop.perform {
          wait()
          loop.stop()
        }
        loop.runUntilStopped()
      } else {
        wait()
      }
      return log.text
    }
    #expect(log == "T T T exit 0")
  }

  @Test("Foundation's call-outs may run our loop, and ours may run Foundation's", .rule(.m28, .r108))
  func nested() {
    let log = served { log, loop in
      foundationTimer(after: 0.001) { _ in
        log.write("F[")
        loop.after(0.001) {
          log.write("T[")
          foundationTimer(after: 0.001) { _ in
            log.write("G")
            CFRunLoopStop(CFRunLoopGetCurrent())
          }
          runFoundation { log.count(of: "G") > 0 }
          log.write("]")
          loop.stop()
        }
        loop.runUntilStopped()
        log.write("]")
        CFRunLoopStop(CFRunLoopGetCurrent())
      }
      runFoundation { log.text.hasSuffix("] ]") }
    }
    #expect(log == "F[ T[ G ] ]")
  }

  @Test("a mode is served in runs of Foundation's mode with the same name", .rule(.m28))
  func modes() {
    let log = onNewThread {
      let log = Log()
      let loop = RunLoop.current
      do {
        try loop.servedByCoreFoundation(mode: "mine") {
          loop.perform(inModes: ["mine"]) { log.write("mine") }
          loop.perform { log.write("default") }
          _ = Foundation.RunLoop.current.run(mode: .default, before: .distantFuture)
          log.write("|")
          while log.count(of: "mine") == 0 {
            _ = Foundation.RunLoop.current.run(mode: Foundation.RunLoop.Mode("mine"), before: .distantFuture)
          }
        }
      } catch {
        log.write("\(error)")
      }
      return log.text
    }
    #expect(log == "| mine")
  }

  @Test(
    "a Foundation timer added to our loop there belongs to Foundation's, which is not served later", .rule(.m28)
  )
  func foundationItems() {
    let log = served { log, loop in
      let timer = Foundation.Timer(fire: .distantPast, interval: 0, repeats: false) { _ in
        log.write("F")
        CFRunLoopStop(CFRunLoopGetCurrent())
      }
      log.write("\(loop.add(timer, forMode: .default) as Bool)")
      runFoundation { log.count(of: "F") > 0 }
      log.write("\(loop.isServingCoreFoundation)")
    }
    #expect(log == "true F false")
  }

  @Test("a notification queued by a Foundation call-out is posted in that run", .rule(.m28), arguments: [true, false])
  func notificationQueue(isAsap: Bool) {
    let log = served { log, loop in
      postFromFoundationTimer(isAsap ? .asap : .whenIdle, log) { CFRunLoopStop(CFRunLoopGetCurrent()) }
      runFoundation { log.count(of: "N") > 0 }
    }
    #expect(log == "F N")
  }

  @Test(
    "a notification queued by a Foundation call-out is posted in a wait during which it is served", .rule(.m32),
    arguments: [true, false])
  func notificationQueueOfHost(isAsap: Bool) {
    let log = hosted { rig in
      rig.keepAlive()
      let log = Log()
      postFromFoundationTimer(isAsap ? .asap : .whenIdle, log) { rig.loop.stop() }
      rig.run()
      rig.write(log.text)
    }
    #expect(log == "stopped F N")
  }

  @Test("after the body has returned or thrown, each loop is independent again", .rule(.m28))
  func end() {
    struct Failure: Error {}
    let log = onNewThread {
      let log = Log()
      let loop = RunLoop.current
      do {
        try loop.servedByCoreFoundation { throw Failure() }
      } catch {
        log.write("\(error)")
      }
      loop.perform {
        log.write("B")
        loop.stop()
      }
      _ = Foundation.RunLoop.current.run(mode: .default, before: .distantFuture)
      log.write("|")
      loop.runUntilStopped()
      return log.text
    }
    #expect(log == "Failure() | B")
  }

  @Test("a loop that serves Core Foundation's is not served by it, nor is the common pseudo-mode", .rule(.m28, .m32))
  func rejected() {
    let log = hosted { rig in
      do {
        try rig.loop.servedByCoreFoundation { rig.write("called") }
      } catch {
        rig.write("\(error)")
      }
      rig.loop.stopServingCoreFoundation()
      do {
        try rig.loop.servedByCoreFoundation(mode: .common) { rig.write("called") }
      } catch RunLoopError.notAMode(let mode) {
        rig.write("\(mode == .common)")
      }
    }
    #expect(log == "\(RunLoopError.hasHost) true")
  }
}

/// Runs a body on a new thread whose loop is served by Core Foundation's, and returns the log.
private func served(_ body: @escaping @Sendable (Log, RunLoop) throws -> Void) -> String {
  onNewThread {
    let log = Log()
    do {
      try RunLoop.current.servedByCoreFoundation { try body(log, .current) }
    } catch {
      log.write("\(error)")
    }
    return log.text
  }
}

/// Runs Foundation's loop until a condition holds; a source or a stop ends each run.
private func runFoundation(until holds: () -> Bool) {
  while !holds() { _ = Foundation.RunLoop.current.run(mode: .default, before: .distantFuture) }
}

/// Queues a notification from a Foundation timer and logs both, and runs a body when it is posted.
private func postFromFoundationTimer(
  _ style: NotificationQueue.PostingStyle, _ log: Log, _ body: @escaping @Sendable () -> Void
) {
  let center = NotificationCenter()
  let queue = NotificationQueue(notificationCenter: center)
  foundationTimer(after: 0.001) { _ in
    log.write("F")
    queue.enqueue(Notification(name: .init("N")), postingStyle: style)
  }
  _ = center.addObserver(forName: .init("N"), object: nil, queue: nil) { _ in
    log.write("N")
    body()
  }
}

extension RunLoop {
  fileprivate func after(_ seconds: Double, _ body: @escaping @Sendable () -> Void) {
    add(Timer(timeInterval: seconds, repeats: false) { _ in body() }, forMode: .default)
  }
}
