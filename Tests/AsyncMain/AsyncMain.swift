// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads

// A program with an async main, whose first thread libdispatch parks. It prints the state of the main thread's loop
// and object at that point, and exits with status 0.
//
//   async-main early | late | waiting
//
// early: loop and object are used before the thread has been parked. late: only afterwards. waiting: another thread
// waits for the main thread when it is parked.
@main
struct AsyncMain {
  static func main() async {
    switch CommandLine.arguments.dropFirst().first {
    case "early":
      let source = RunLoop.Source(cancel: { _, _ in say("cancel on main: \(isFirstThread)") }, perform: {})
      RunLoop.main.add(source, forMode: .default)
      RunLoop.main.perform { say("never") }
      say("object: \(Thread.main.isExecuting)")
      await mainThreadLeaves()
      say("loop: \(RunLoop.main.hasEnded), dropped \(RunLoop.main.statistics.droppedBlockCount)")
      ask()
    case "waiting":
      let posted = Thread.main
      let waiter = Thread {
        do { try posted.performAndWait { say("never") } } catch { say("wait: \(error)") }
        do { try posted.join() } catch { say("join: \(error)") }
      }
      waiter.start()
      await mainThreadLeaves()
      do { try waiter.join() } catch { say("\(error)") }
    default:
      await mainThreadLeaves()
      ask()
    }
    exit(0)
  }

  static func ask() {
    let isTaken: Bool = RunLoop.main.perform { say("never") }
    let isAdded = RunLoop.main.add(RunLoop.Source {}, forMode: .default)
    say("perform \(isTaken), add \(isAdded), ended \(RunLoop.main.hasEnded)")
    do { try RunLoop.main.addCommonMode("mode") } catch { say("\(error == .mainThreadHasLeft)") }
    let thread = Thread.main
    say("finished \(thread.isFinished), main \(thread.isMainThread), loop \(thread.runLoop == nil)")
    do { try thread.perform { say("never") } } catch { say("\(error)") }
    do { try thread.perform(afterDelay: .zero) { say("never") } } catch { say("\(error == .mainThreadHasLeft)") }
    do {
      try thread.performAndWait { say("never") }
    } catch {
      say("\(error as? ThreadError == .mainThreadHasLeft)")
    }
    do { try thread.join() } catch { say("\(error)") }
    say("joined")
  }

  /// Moves the program to a thread of the pool, and waits until the first thread has been parked.
  static func mainThreadLeaves() async {
    await Task.yield()
    while !isParked { await Task.yield() }
  }

  /// Whether the first thread sleeps in a destructor of libdispatch, from which it does not return.
  private static var isParked: Bool {
    guard let file = fopen("/proc/self/task/\(getpid())/syscall", "r") else { return false }
    defer { _ = fclose(file) }
    var line: [CChar] = Array(repeating: 0, count: 64)
    guard fgets(&line, 64, file) != nil else { return false }
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // `rt_sigsuspend` on x86-64 and on arm64; an emulator shows the number of its own system.
    return text.hasPrefix("130 ") || text.hasPrefix("133 ")
  }
}

/// Whether the calling thread is the process's first thread.
var isFirstThread: Bool {
  guard let link = realpath("/proc/thread-self", nil) else { return false }
  defer { free(link) }
  return String(cString: link).hasSuffix("/task/\(getpid())")
}

func say(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}
