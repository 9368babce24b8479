// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import RunLoopThreads
import Testing
import TestSupport

// L24: Foundation posts none of these.
@Suite("The notifications of threads", .timeLimit(.minutes(20)))
struct ThreadNotificationTests {
  /// Logs when a thread with a unique name is about to end.
  private func listener(_ name: String, _ log: Log) -> Listener {
    Listener(.NSThreadWillExit) { notification in
      guard let thread = notification.object as? Thread, thread.name == name else { return }
      let place = Thread.current === thread ? "here" : "elsewhere"
      let loop = RunLoop.current.hasEnded ? "its loop ended" : "its loop alive"
      log.write("\(place), \(thread.isExecuting ? "executing" : "finished"), \(loop)")
    }
  }

  private let expected = "body here, executing, its loop alive"

  @Test("a thread posts its end once, on itself, however it ends", arguments: [false, true])
  func willExit(leaves: Bool) throws {
    let log = Log()
    let listener = listener("ending \(leaves)", log)
    let thread = Thread {
      log.write("body")
      if leaves { Thread.exit() }
    }
    thread.name = "ending \(leaves)"
    thread.start()
    try thread.join()
    withExtendedLifetime(listener) {}
    #expect(log.text == expected)
  }

  @Test("a thread created by other code posts its end if it has asked for its object")
  func foreign() {
    let log = Log()
    let listener = listener("ending foreign", log)
    onNewThread {
      log.write("body")
      Thread.current.name = "ending foreign"
    }
    onNewThread {}
    withExtendedLifetime(listener) {}
    #expect(log.text == expected)
  }

  @Test("a resident thread posts its end")
  func resident() throws {
    let log = Log()
    let listener = listener("ending resident", log)
    let resident = try ResidentThread(name: "ending resident")
    try resident.performAndWait { log.write("body") }
    resident.stop()
    try resident.join()
    withExtendedLifetime(listener) {}
    #expect(log.text == expected)
  }

  @Test("an observer of one thread is notified of that thread only")
  func oneThread() throws {
    let log = Log()
    let thread = Thread {}
    let listener = Listener(.NSThreadWillExit, thread) { log.write("\($0.object as? Thread === thread)") }
    try onThread {}
    thread.start()
    try thread.join()
    withExtendedLifetime(listener) {}
    #expect(log.text == "true")
  }

  @Test("a thread that cannot be started posts no end")
  func notStarted() throws {
    let log = Log()
    let thread = Thread {}
    let listener = Listener(.NSThreadWillExit, thread) { _ in log.write("ended") }
    thread.cancel()
    thread.start()
    try thread.join()
    withExtendedLifetime(listener) {}
    #expect(log.text == "")
  }

  // Needs its own process, because Core Foundation never releases a loop created this late, and a later thread with
  // the same ID would find it.
  @Test("an end observer may use Foundation and the loop, and whatever it leaves there is dropped, not run")
  func observerWorks() async {
    await #expect(processExitsWith: .success) {
      let log = Log()
      let thread = Thread {}
      let listener = Listener(.NSThreadWillExit, thread) { _ in
        let formatter = NumberFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        log.write(formatter.string(from: 7) ?? "nothing")
        RunLoop.current.perform { log.write("performed") }
        log.write("\(RunLoop.current.run(mode: .default, for: .zero))")
        RunLoop.current.perform { log.write("left") }
        Thread.current.threadDictionary["a"] = Date()
        log.write("\(Foundation.Thread.current.isMainThread) \(Foundation.RunLoop.current.currentMode == nil)")
      }
      thread.start()
      try thread.join()
      withExtendedLifetime(listener) {}
      #expect(log.text == "7 performed timedOut false true")
    }
  }

  @Test("before a process's first thread starts, becoming multi-threaded is announced once")
  func multiThreaded() async {
    await #expect(processExitsWith: .success) {
      let log = Log()
      let starter = onNewThread { RunLoop.callingThreadID }
      let listener = Listener(.NSWillBecomeMultiThreaded) { notification in
        log.write("announced \(notification.object == nil) \(RunLoop.callingThreadID == starter ? "" : "here")")
        // Threads started meanwhile are not announced.
        _ = try? onThread { log.write("inner") }
      }
      for _ in 0..<2 { try onThread { log.write("ran") } }
      withExtendedLifetime(listener) {}
      #expect(log.text == "announced true here inner ran ran")
      #expect(Thread.isMultiThreaded())
    }
  }

  @Test("thread notifications have Foundation's names")
  func names() {
    let names: [Notification.Name] = [.NSThreadWillExit, .NSWillBecomeMultiThreaded, .NSDidBecomeSingleThreaded]
    #expect(
      names.map(\.rawValue) == [
        "NSThreadWillExitNotification", "NSWillBecomeMultiThreadedNotification",
        "NSDidBecomeSingleThreadedNotification",
      ])
  }
}
