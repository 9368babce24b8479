// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopLibC
import RunLoopThreads
import RunLoopToolKit

/// F1: what has caused what a loop calls now.
struct WhoPosted: Experiment {
  let id = "F1"
  let title = "Who posted what runs now"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    What a loop's thread runs can be read from a backtrace: each of the six kinds of call-out has a function of its own in it. Who has \
    posted the block, signalled the source or added the timer is not in it, as that thread has long gone on.
    """
  let needsRecords = true
  let verdict = Verdict.confirmed
  let evidence =
    "The backtraces that Xilankong and Ren print end at __CFRUNLOOP_IS_CALLING_OUT_TO_…, above CFRunLoopRunSpecific."
  let difference = Difference.addition(
    """
    While a loop records, each call-out says what has caused it, also through a port, a timer, a wait and Swift's own threads: \
    "runloop trace" shows it.
    """)
  // Swift's own threads must not have been used for anything that still goes on.
  let needsFreshWorkers = true

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      crl_level_hold(CRL_RECORD.rawValue)
      defer { crl_level_release(CRL_RECORD.rawValue) }
      let pair = Pair(bench)
      var outcome = Outcome()
      func observe(_ subject: String, requires required: String, _ body: @escaping @Sendable (Pair, Flag) -> Void) {
        outcome.observe(subject, pair.causes(body), requires: required)
      }
      observe("a block, which a block of the first loop posts", requires: "block -> block") { pair, done in
        pair.loop.perform { done.set() }
      }
      observe("a source, which it signals", requires: "block -> source0") { pair, done in
        let source = RunLoop.Source(performing: { source in
          source.invalidate()
          done.set()
        })
        pair.loop.add(source, forMode: .default)
        source.signal()
        pair.loop.wakeUp()
      }
      observe("a message, which it sends", requires: "block -> source1") { pair, done in
        let port = Port { port, _ in
          port.invalidate()
          done.set()
        }
        pair.loop.add(port, forMode: .default)
        try? port.send(Port.Message(id: 1))
      }
      observe("a timer, which it adds", requires: "block -> timer") { pair, done in
        Timer(after: .zero, on: pair.loop) { _ in done.set() }
      }
      observe(
        "work that it waits for, and its way back", requires: "block -> perform, perform -> block"
      ) { pair, done in
        try? pair.second.performAndWait(timeout: bench.meeting.patience) {}
        done.set()
      }
      pair.end()
      return outcome
    }
  }
}

/// Two loops that record, of which the first causes what the second calls.
private final class Pair: Sendable {
  private let first: WatchedThread
  let second: WatchedThread
  private let bench: Bench

  init(_ bench: Bench) {
    self.bench = bench
    func thread(_ name: String) -> WatchedThread {
      let thread = WatchedThread(on: bench, name: name) { watch in
        watch.loop.add(Port(), forMode: .default)
        watch.loop.run(mode: .default, for: bench.meeting.patience)
      }
      thread.start()
      thread.watch.settle()
      return thread
    }
    first = thread("first")
    second = thread("second")
  }

  /// The second's loop.
  var loop: RunLoop { second.runLoop ?? .current }

  /// Lets a block of the first loop do something, and says what the first's call-outs have caused on the second.
  func causes(_ body: @escaping @Sendable (Pair, Flag) -> Void) -> String {
    let begin = crl_monotonic_nanoseconds()
    let done = bench.flag()
    first.runLoop?.perform { [self] in body(self, done) }
    bench.meeting.wait { done.isSet }
    first.watch.settle()
    second.watch.settle()
    guard let process = try? TargetProcess(getpid()), let file = try? process.openRecords() else { return "no records" }
    let reader = TimelineReader(file, of: process)
    try? reader.read()
    let timeline = reader.finish()
    var found: [String] = []
    for edge in timeline.edges where edge.kind != .wake && edge.time >= begin {
      guard timeline.lanes[edge.to.lane].name == "second", case .item(let from) = edge.from,
        timeline.lanes[from.lane].name == "first"
      else { continue }
      let cause = Timeline.kindName(timeline.lanes[from.lane].items[from.index].kind)
      let effect = Timeline.kindName(timeline.lanes[edge.to.lane].items[edge.to.index].kind)
      found.append(edge.kind == .back ? "\(effect) -> \(cause)" : "\(cause) -> \(effect)")
    }
    return found.isEmpty ? "none" : found.joined(separator: ", ")
  }

  func end() {
    for thread in [first, second] {
      thread.runLoop?.stop()
      _ = thread.finished()
      thread.end()
    }
  }
}
