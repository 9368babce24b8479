// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopInstruments
import RunLoopThreads

/// F1: the origins of a loop's call-outs.
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
  // Swift's own threads must not have pending work.
  let needsFreshWorkers = true

  /// A way in which a block of one loop causes a call-out of another.
  private struct Case {
    /// The prefix of the threads' names, followed by "first" and "second".
    let name: String
    let subject: String
    let required: String
    let body: @Sendable (Pair, Flag) -> Void
  }

  private static func cases(_ bench: Bench) -> [Case] {
    [
      Case(name: "block", subject: "a block, which a block of the first loop posts", required: "block -> block") {
        pair, done in
        pair.loop.perform { done.set() }
      },
      Case(name: "source", subject: "a source, which it signals", required: "block -> source0") { pair, done in
        let source = RunLoop.Source(performing: { source in
          source.invalidate()
          done.set()
        })
        pair.loop.add(source, forMode: .default)
        source.signal()
        pair.loop.wakeUp()
      },
      Case(name: "port", subject: "a message, which it sends", required: "block -> source1") { pair, done in
        let port = Port { port, _ in
          port.invalidate()
          done.set()
        }
        pair.loop.add(port, forMode: .default)
        try? port.send(Port.Message(id: 1))
      },
      Case(name: "timer", subject: "a timer, which it adds", required: "block -> timer") { pair, done in
        pair.loop.schedule(in: .zero) { _ in done.set() }
      },
      Case(
        name: "wait", subject: "work that it waits for, and its way back",
        required: "block -> perform, perform -> block"
      ) { pair, done in
        try? pair.second.performAndWait(timeout: bench.meeting.patience) {}
        done.set()
      },
    ]
  }

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      let level = Instruments.hold(.record)
      defer { level.release() }
      let cases = Self.cases(bench)
      let pairs = cases.map { each in
        let pair = Pair(bench, each.name)
        return (pair, isInTime: pair.cause(each.body))
      }
      var causes: [Cause] = []
      var problem: String?
      do {
        causes = try recordedCauses()
      } catch {
        problem = "\(error)"
      }
      for (pair, _) in pairs { pair.end() }
      var outcome = Outcome()
      for (each, (_, isInTime)) in zip(cases, pairs) {
        let seen = isInTime ? problem ?? text(causes, each.name) : "it is not called"
        outcome.observe(each.subject, seen, requires: each.required)
      }
      return outcome
    }
  }

  /// Returns the call-outs of a pair's second loop that the first one has caused.
  private func text(_ causes: [Cause], _ name: String) -> String {
    let (first, second) = (Pair.first(name), Pair.second(name))
    let found = causes.filter { Set([$0.from.thread, $0.to.thread]) == [first, second] }
      .map { "\($0.from.kind ?? "a thread") -> \($0.to.kind ?? "a thread")" }
    return found.isEmpty ? "none" : found.joined(separator: ", ")
  }

  /// Returns the recent causes that "runloop trace" reads from this process's own record.
  private func recordedCauses() throws -> [Cause] {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let record = directory.path + "/record"
    try Instruments.writeRecord(to: record, last: .seconds(3600))
    let answer: TraceAnswer = try Tool.ask("trace", "--from", record, "--output", directory.path + "/trace.pftrace")
    return answer.causes
  }
}

/// The output of `runloop trace --json`.
private struct TraceAnswer: Decodable {
  let causes: [Cause]
}

private struct Cause: Decodable {
  struct Doer: Decodable {
    let thread: String
    let kind: String?
  }

  let from: Doer
  let to: Doer
}

/// Two loops that record, the first of which causes call-outs of the second.
private final class Pair: Sendable {
  private let first: WatchedThread
  let second: WatchedThread
  private let bench: Bench

  static func first(_ name: String) -> String { "first \(name)" }
  static func second(_ name: String) -> String { "second \(name)" }

  init(_ bench: Bench, _ name: String) {
    self.bench = bench
    func thread(_ name: String) -> WatchedThread {
      let thread = WatchedThread(on: bench, name: name) { watch in
        watch.loop.add(watch.port(), forMode: .default)
        watch.loop.run(mode: .default, for: .infinity)
      }
      thread.start()
      thread.watch.settle()
      return thread
    }
    first = thread(Self.first(name))
    second = thread(Self.second(name))
  }

  /// The loop of the second thread.
  var loop: RunLoop { second.runLoop ?? .current }

  /// Runs a block on the first loop, and waits until both loops have finished; returns false if the caused call-out
  /// is not made.
  func cause(_ body: @escaping @Sendable (Pair, Flag) -> Void) -> Bool {
    let done = bench.flag()
    first.runLoop?.perform { [self] in body(self, done) }
    let isDone = done.wait()
    first.watch.settle()
    second.watch.settle()
    return isDone
  }

  func end() {
    for thread in [first, second] {
      thread.runLoop?.stop()
      _ = thread.finished()
      thread.end()
    }
  }
}
