// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Glibc
import RunLoopCore
import RunLoopGLib
import RunLoopThreads
import TestSupport
import Testing

/// Each test has a thread with its own context, and GLib runs it.
@Suite("A run loop in a GLib context", .timeLimit(.minutes(5)), .enabled(if: GLib.isInstalled))
struct GLibHostTests {
  @Test("everything that a loop serves is served while GLib waits")
  func everything() throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach()
      let pipe = try RawPipe()
      try loop.add(
        RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
          pipe.read()
          log.write("descriptor")
          context.quit()
        }, forMode: .default)
      let source = RunLoop.Source {
        log.write("source")
        pipe.write()
      }
      loop.add(source, forMode: .default)
      let poster = Thread {
        waitUntil { loop.isWaiting }
        loop.perform {
          log.write("block")
          loop.schedule(in: .milliseconds(2)) { _ in
            log.write("timer")
            source.signal()
          }
        }
      }
      try poster.tryStart()
      context.run()
      try poster.join()
      #expect(log.text == "block timer source descriptor")
    }
  }

  @Test("the instruments report the host, also in a nested loop, until it is detached")
  func hostName() throws {
    try onThread { context in
      let loop = RunLoop.current
      #expect(loop.faceReading.host == CRL_HOST_NONE)
      let host = try GLibHost.attach()
      let inside = Box<[crl_host]>([])
      loop.perform {
        loop.perform { inside.update { $0.append(loop.faceReading.host) } }
        while inside.value.isEmpty { GLib.iterate(context.pointer) }
      }
      while inside.value.isEmpty { GLib.iterate(context.pointer) }
      #expect(inside.value == [CRL_HOST_GLIB])
      #expect(loop.faceReading.host == CRL_HOST_GLIB)
      host.detach()
      #expect(loop.faceReading.host == CRL_HOST_NONE)
    }
  }

  @Test("a deadline sooner than GLib's is met, and a wait without a deadline does not end early")
  func waits() throws {
    try onThread { context in
      let loop = RunLoop.current
      try GLibHost.attach()
      loop.perform {}
      for _ in 0..<4 { GLib.iterate(context.pointer, waits: false) }
      // From here on one timer is the only work. Each turn of the context is counted.
      var turns = 0
      let hasFired = Box(false)
      let now = loop.now
      loop.schedule(in: .milliseconds(50)) { _ in hasFired.value = true }
      while !hasFired.value {
        GLib.iterate(context.pointer)
        turns += 1
      }
      #expect(now.duration(to: loop.now) >= .milliseconds(50))
      #expect(turns <= 3)
    }
  }

  @Test("a call-out that runs the context again serves the loop there", arguments: ["timer", "block", "source"])
  func nested(kind: String) throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach()
      let dialogue: @Sendable () -> Void = {
        log.write("begins")
        let poster = Thread {
          waitUntil { loop.isWaiting }
          loop.perform {
            log.write("posted")
            // From another GLib source, in the nested loop.
            context.add {
              loop.perform {
                log.write("again")
                loop.schedule(in: .milliseconds(1)) { _ in
                  log.write("fires")
                  context.quit()
                }
              }
              return false
            }
          }
        }
        try? poster.tryStart()
        context.run()
        try? poster.join()
        log.write("ends")
        loop.perform {
          log.write("after")
          context.quit()
        }
      }
      switch kind {
      case "timer": loop.schedule(in: .zero) { _ in dialogue() }
      case "block": loop.perform(dialogue)
      default:
        let source = RunLoop.Source { _ in dialogue() }
        loop.add(source, forMode: .default)
        source.signal()
      }
      context.run()
      #expect(log.text == "begins posted again fires ends after")
    }
  }

  @Test("nested loops within nested loops are served, and the outer ones continue")
  func deep() throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach()
      @Sendable func open(_ depth: Int) {
        loop.perform {
          log.write("\(depth)")
          if depth < 5 {
            open(depth + 1)
            context.run()
          }
          log.write("-\(depth)")
          loop.perform { context.quit() }
        }
      }
      open(1)
      context.run()
      #expect(log.text == "1 2 3 4 5 -5 -4 -3 -2 -1")
    }
  }

  @Test("a run of the loop within a GLib source may run the context again")
  func runInCallback() throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach()
      context.add {
        loop.perform {
          log.write("in our run")
          loop.schedule(in: .milliseconds(1)) { _ in
            log.write("in the dialogue")
            context.quit()
          }
          context.run()
        }
        loop.run(mode: .default, for: .zero)
        log.write("our run is over")
        loop.perform { context.quit() }
        return false
      }
      context.run()
      #expect(log.text == "in our run in the dialogue our run is over")
    }
  }

  @Test("in the mode of a nested loop, items of other modes wait")
  func modes() throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      let host = try GLibHost.attach()
      context.add {
        loop.perform { log.write("default") }
        host.run(in: "dialogue") {
          loop.perform(inModes: ["dialogue"]) { log.write("dialogue") }
          loop.schedule(in: .milliseconds(2), mode: "dialogue") { _ in
            log.write("late")
            context.quit()
          }
          context.run()
        }
        log.write("over")
        loop.perform { context.quit() }
        return false
      }
      context.run()
      #expect(log.text == "dialogue late over default")
    }
  }

  @Test("a stop is reported to the program wherever it is called")
  func stop() throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach {
        log.write("stop")
        context.quit()
      }
      loop.perform { loop.stop() }
      context.run()
      log.write("first")
      let stopper = Thread {
        waitUntil { log.count(of: "dialogue") == 1 && loop.isWaiting }
        loop.stop()
      }
      try stopper.tryStart()
      loop.perform {
        log.write("dialogue")
        context.run()
        log.write("over")
        context.quit()
      }
      context.run()
      try stopper.join()
      #expect(log.text == "stop first dialogue stop over")
    }
  }

  @Test("a resident thread stopped in a nested loop reports the stop and does not spin")
  func stoppedThread() throws {
    let log = Log()
    let isOpen = Latch()
    let context = Box<Context?>(nil)
    let thread = try ResidentThread(
      name: "dialogues",
      onStart: {
        let own = Context()
        context.value = own
        _ = try? GLibHost.attach {
          log.write("stop")
          own.quit()
        }
      })
    try thread.perform {
      log.write("opens")
      isOpen.open()
      context.value?.run()
      log.write("closed")
    }
    isOpen.wait()
    thread.stop(.immediately)
    try thread.join()
    #expect(log.text == "opens stop closed")
  }

  @Test(
    "the loop's turn is before or after drawing, depending on its priority",
    arguments: [(0, "ours draws"), (150, "draws ours")])
  func priorities(priority: Int32, order: String) throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach(priority: priority)
      GLib.iterate(context.pointer, waits: false)
      context.add(priority: 120) {
        log.write("draws")
        return false
      }
      loop.perform { log.write("ours") }
      while log.text.split(separator: " ").count < 2 { GLib.iterate(context.pointer) }
      #expect(log.text == order)
    }
  }

  @Test("a loop that is always busy leaves time to draw windows and call idle sources")
  func fairness() throws {
    try onThread { context in
      let loop = RunLoop.current
      try GLibHost.attach()
      let isOver = Box(false)
      let blocks = Counter()
      @Sendable func again() {
        loop.perform {
          if blocks.add() == 10_000_000 { context.quit() }
          if !isOver.value { again() }
        }
      }
      again()
      var idle = 0
      context.add(priority: 200) {
        idle += 1
        guard idle == 10 else { return true }
        isOver.value = true
        context.quit()
        return false
      }
      context.run()
      #expect(idle == 10)
    }
  }
}
