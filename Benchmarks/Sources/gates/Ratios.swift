// SPDX-License-Identifier: Apache-2.0

import CCounts
import Glibc
import Limits
import RunLoopCore
import RunLoopThreads

/// Two operations, and a limit in `Benchmarks/Limits` for the ratio of their instructions.
///
/// A parent steps through them, so only each thread's own instructions count, not clocks or waits.
struct Ratio: Sendable {
  let name: String
  let operation: Stepped
  let base: Stepped
}

/// Runs an operation a number of times, with some threads stepped meanwhile.
struct Stepped: Sendable {
  /// The number of threads that are stepped, each in a separate run.
  var threads = 1
  /// Runs the operation, and calls `counts_step` on the thread with a number before and after.
  let run: @Sendable (_ count: Int, _ thread: Int) -> Void
}

private let ratios: [Ratio] = [
  Ratio(
    name: "post to one mode, and its run",
    operation: Stepped { count, _ in
      let modes: [RunLoop.Mode] = ["gates"]
      postAndRun(count, in: "gates") { loop in loop.perform(inModes: modes) {} }
    },
    base: Stepped { count, _ in postAndRun(count, in: .default) { loop in loop.perform {} } }),
  // It detects deadlocks, cancellations and threads that end, for which it allocates four objects.
  Ratio(
    name: "performAndWait",
    operation: Stepped(threads: 2) { count, thread in
      guard let resident = try? ResidentThread() else { fail("no thread") }
      let call: @Sendable () -> Void = {}
      postAndWait(count, thread, resident.runLoop) { try? resident.performAndWait(call) }
    },
    base: Stepped(threads: 2) { count, thread in
      guard let resident = try? ResidentThread() else { fail("no thread") }
      let signal = Signal()
      let call: @Sendable () -> Void = { signal.send() }
      postAndWait(count, thread, resident.runLoop) {
        resident.runLoop.perform(call)
        signal.wait()
      }
    }),
]

/// Posts from a call-out, and runs the posts on the same thread.
private func postAndRun(_ count: Int, in mode: RunLoop.Mode, _ post: @escaping @Sendable (RunLoop) -> Void) {
  onLoop { loop in
    loop.add(RunLoop.Source {}, forMode: mode)
    for turn in 0..<12 {
      loop.perform(inModes: [mode]) {
        if turn == 11 { counts_step(true) }
        for _ in 0..<count { post(loop) }
        loop.perform(inModes: [mode]) {
          if turn == 11 { counts_step(false) }
          loop.stop()
        }
      }
      loop.run(mode: mode, for: .seconds(1000))
    }
  }
}

/// Makes synchronous calls to a loop, and steps the calling thread or the loop's.
private func postAndWait(_ count: Int, _ thread: Int, _ loop: RunLoop, _ call: @escaping @Sendable () -> Void) {
  // Spinning lasts as long as the other thread takes, so its instructions are not a cost of the call.
  RunLoop.waiting = .sleep
  @Sendable func step(_ isOn: Bool) {
    guard thread == 1 else { return counts_step(isOn) }
    let isDone = Signal()
    loop.perform {
      counts_step(isOn)
      isDone.send()
    }
    isDone.wait()
  }
  onLoop { _ in
    for _ in 0..<100 { call() }
    step(true)
    for _ in 0..<count { call() }
    step(false)
  }
}

private let steppedCount = 100

/// Implements `gates --steps`: a child that is stepped runs each operation.
func checkRatios(_ limits: Limits) -> Int {
  print(pad("", 44), pad("instructions", 16), "ratio")
  return ratios.count { ratio in
    let (each, base) = (instructions(of: ratio, isBase: false), instructions(of: ratio, isBase: true))
    let value = each / base
    // The number varies slightly with the memory layout, so the limit adds a twentieth, rounded up to a tenth.
    let limit = limits.limit(ratio.name, "ratio of instructions", proposal: (value * 10.5).rounded(.up) / 10)
    print(
      pad(ratio.name, 44), pad("\(Int(each.rounded())) of \(Int(base.rounded()))", 16),
      "\((value * 100).rounded() / 100) of \(limit)", value <= limit ? "" : "TOO MANY")
    return value > limit
  }
}

private func instructions(of ratio: Ratio, isBase: Bool) -> Double {
  let threads = (isBase ? ratio.base : ratio.operation).threads
  return (0..<threads).reduce(0) { sum, thread in
    var status: Int32 = 0
    var words: [UnsafeMutablePointer<CChar>?] = []
    for word in ["gates", "--step", ratio.name, isBase ? "base" : "operation", "\(thread)"] {
      words.append(strdup(word))
    }
    words.append(nil)
    let steps = counts_instructions(&words, &status)
    for word in words { free(word) }
    guard steps > 0, status == 0 else { fail("\(ratio.name): ended with \(status) after \(steps) steps") }
    return sum + Double(steps) / Double(steppedCount)
  }
}

/// Runs the child's part; returns if this process is not such a child.
func runStepped(_ arguments: [String]) {
  guard arguments.count == 5, arguments[1] == "--step", let ratio = ratios.first(where: { $0.name == arguments[2] })
  else { return }
  (arguments[3] == "base" ? ratio.base : ratio.operation).run(steppedCount, Int(arguments[4]) ?? 0)
  fflush(nil)
  _exit(0)
}
