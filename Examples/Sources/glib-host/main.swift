// SPDX-License-Identifier: Apache-2.0

// Our main run loop inside GLib's, on the main thread, with timers of both, blocks from threads, a descriptor, the
// main dispatch queue and the main actor. GLib waits, and our loop is its guest.

import CHostLoop
import Dispatch
import Glibc
import RunLoopCore
import Synchronization

/// Counts calls, on any thread, so that calls on the wrong one are counted too.
final class Tally: Sendable {
  private let counts = Mutex<[String: Int]>([:])
  private let strangers = Atomic<Int>(0)

  func count(_ what: String) {
    counts.withLock { $0[what, default: 0] += 1 }
    if pthread_equal(pthread_self(), mainThread) == 0 { strangers.wrappingAdd(1, ordering: .relaxed) }
  }

  subscript(_ what: String) -> Int { counts.withLock { $0[what] ?? 0 } }
  var onOtherThreads: Int { strangers.load(ordering: .relaxed) }

  private let mainThread = pthread_self()
}

/// Posts to a loop from several threads, and writes to a pipe.
func startThreads(_ loop: RunLoop, _ tally: Tally, writing descriptor: Int32) {
  let signalled = RunLoop.Source { tally.count("signalled") }
  loop.add(signalled, forMode: .common)
  for number in 0..<4 {
    DispatchQueue.global().async {
      for _ in 0..<250 { loop.perform { tally.count("posted") } }
      if number == 0 {
        signalled.signal()
        loop.wakeUp()
        _ = write(descriptor, "four", 4)
      }
    }
  }
}

/// Posts work to the main dispatch queue and the main actor from another thread.
func startMainWork(_ tally: Tally, _ order: Order) {
  DispatchQueue.global().async {
    for number in 0..<100 {
      DispatchQueue.main.async {
        tally.count("main queue")
        order.append(number)
      }
    }
    Task { @MainActor in
      for _ in 0..<10 {
        MainActor.assertIsolated()
        tally.count("main actor")
        try? await Task.sleep(for: .milliseconds(1))
      }
    }
  }
}

/// The order in which blocks of the main queue ran.
final class Order: Sendable {
  private let numbers = Mutex<[Int]>([])
  func append(_ number: Int) { numbers.withLock { $0.append(number) } }
  var isKept: Bool { numbers.withLock { $0 == Array(0..<100) } }
}

func show() throws(RunLoopError) -> Bool {
  let loop = RunLoop.current
  guard let host = try Host() else {
    print("built without GLib: install libglib2.0-dev, and build again")
    return true
  }
  let tally = Tally()
  let order = Order()
  var ends: [Int32] = [0, 0]
  guard pipe(&ends) == 0 else { return false }
  let (reading, writing) = (ends[0], ends[1])

  // In our loop: a timer, a descriptor, an observer of the waits, and posts from other threads.
  var fired = 0
  loop.add(
    Timer(timeInterval: 0.005, repeats: true) { _ in tally.count("our timer") }, forMode: .common)
  try loop.add(
    RunLoop.DescriptorSource(descriptor: reading, events: .readable) { _, _ in
      var byte: UInt8 = 0
      if read(reading, &byte, 1) == 1 { tally.count("byte") }
    }, forMode: .common)
  loop.add(
    RunLoop.Observer(activities: [.beforeWaiting, .afterWaiting]) { _, _ in tally.count("wait") }, forMode: .common)
  startThreads(loop, tally, writing: writing)
  startMainWork(tally, order)

  // In GLib's loop: a timeout that posts to our loop, runs it briefly, and finally stops it.
  host.every(milliseconds: 7) {
    fired += 1
    tally.count("timeout")
    loop.perform { tally.count("posted by timeout") }
    if fired == 5 {
      loop.perform { tally.count("in a nested run") }
      loop.run(mode: .default, for: Duration.zero)
      if tally["in a nested run"] == 1 { tally.count("nested run") }
    }
    if fired == 30 {
      DispatchQueue.global().async { loop.stop() }
      return false
    }
    return true
  }
  host.run()
  return isAsExpected(tally, order, host)
}

func isAsExpected(_ tally: Tally, _ order: Order, _ host: Host) -> Bool {
  let library = chost_library().map { String(cString: $0) } ?? "no library"
  print("\(library) has waited for a run loop of ours, in \(host.turns.values.reduce(0, +)) turns")
  var isWell = true
  func check(_ what: String, _ holds: Bool) {
    print(holds ? "  as expected: \(what)" : "  WRONG: \(what)")
    if !holds { isWell = false }
  }
  check("30 timeouts of GLib's: \(tally["timeout"])", tally["timeout"] == 30)
  // A 5 ms timer has 42 dates in 30 times 7 ms. It may miss some on a busy machine.
  check("a timer of ours between them: \(tally["our timer"])", (10...).contains(tally["our timer"]))
  check("1000 blocks from four threads: \(tally["posted"])", tally["posted"] == 1000)
  check("a block by each timeout: \(tally["posted by timeout"])", tally["posted by timeout"] >= 29)
  check("a source signalled by a thread: \(tally["signalled"])", tally["signalled"] == 1)
  check("4 bytes of a descriptor, one for each turn: \(tally["byte"])", tally["byte"] == 4)
  check("100 blocks of the main dispatch queue, once and in order: \(tally["main queue"])", order.isKept)
  check("10 steps of the main actor: \(tally["main actor"])", tally["main actor"] == 10)
  check("a run of our loop within a timeout of GLib's", tally["nested run"] == 1)
  check("observers before and after the waits: \(tally["wait"])", tally["wait"] > 60)
  check("one stop, which has ended GLib's loop", host.turns[.stopped] == 1)
  check("everything on the main thread", tally.onOtherThreads == 0)
  return isWell
}

do {
  exit(try show() ? 0 : 1)
} catch {
  fatalError("\(error)")
}
