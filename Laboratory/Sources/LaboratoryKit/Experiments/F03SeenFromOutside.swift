// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads

/// F3: an idle loop, observed by another process.
struct SeenFromOutside: Experiment {
  let id = "F3"
  let title = "What an idle loop does, seen from outside"
  let articles: [Article] = [.xilankong]
  let claim = """
    An application that nobody touches turns once a minute, as observers in it print.
    """
  let needsRecords = true
  let verdict = Verdict.corrected(
    """
    An idle loop does nothing: another process, which adds nothing to it, sees in five seconds no wake-up of its thread, and \
    one a second with a timer of a second. What turned once a minute was something with a date.
    """)
  let evidence = """
    R45 and R50 of Core Foundation: without a wake-up, a timer or a source the loop sleeps on. The kernel counts how often a \
    thread has waited.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      let seconds = 5
      let threads = [false, true].map { hasTimer in
        WatchedThread(on: bench, name: hasTimer ? "ticking" : "idle") { watch in
          let loop = watch.loop
          loop.add(watch.port(), forMode: .default)
          if hasTimer { loop.add(Timer(timeInterval: 1, repeats: true) { _ in }, forMode: .default) }
          loop.runUntilStopped()
        }
      }
      for thread in threads {
        thread.start()
        thread.watch.settle()
      }
      let seen = Onlooker.waits(of: threads.map(\.watch.threadNumber), for: seconds)
      for thread in threads { thread.watch.say("was looked at by another process") }
      var outcome = Outcome()
      outcome.observe("with nothing due", text(seen?.counts.first), requires: "no wake-up")
      outcome.observe(
        "with a timer of a second", seen.map { pace($0.counts[1], in: $0.seconds) } ?? "not seen",
        requires: "a wake-up a second")
      for thread in threads { thread.end() }
      return outcome
    }
  }

  private func text(_ count: Int?) -> String {
    switch count {
    case nil: "not seen"
    case 0: "no wake-up"
    case let count?: "\(count) wake-ups"
    }
  }

  private func pace(_ count: Int, in seconds: Double) -> String {
    // Both samples are taken at an arbitrary point between two wake-ups.
    abs(Double(count) - seconds) <= 1.5 ? "a wake-up a second" : "\(count) wake-ups in \(Int(seconds.rounded())) s"
  }
}

/// A process that reads the kernel's statistics about threads.
private enum Onlooker {
  /// Returns how often threads of this process waited during an observation by another process, and its length.
  static func waits(of threads: [Int32], for seconds: Int) -> (counts: [Int], seconds: Double)? {
    let files = threads.map { "/proc/\(getpid())/task/\($0)/status" }.joined(separator: " ")
    // A thread that has announced its sleep may not sleep yet, so the first sample is taken a second later.
    let look = "grep -h '^voluntary_ctxt_switches' \(files) || exit 1; cut -d ' ' -f 1 /proc/uptime"
    guard let text = output(of: "sleep 1; \(look); sleep \(seconds); \(look)") else { return nil }
    let numbers = text.split(separator: "\n").compactMap { Double($0.split(separator: "\t").last ?? "") }
    let half = threads.count + 1
    guard numbers.count == 2 * half else { return nil }
    let counts = threads.indices.map { Int(numbers[half + $0] - numbers[$0]) }
    return (counts, numbers[2 * half - 1] - numbers[half - 1])
  }

  /// Returns the output of a script, or nil if it fails.
  private static func output(of script: String) -> String? {
    guard let stream = popen(script, "re") else { return nil }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&chunk, 1, chunk.count, stream), count > 0 { bytes += chunk[..<count] }
    return pclose(stream) == 0 ? String(decoding: bytes, as: UTF8.self) : nil
  }
}
