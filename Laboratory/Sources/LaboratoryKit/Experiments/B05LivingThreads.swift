// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// B5: the threads of XWLivingThread.
struct LivingThreads: Experiment {
  let id = "B5"
  let title = "Threads for all, by name, and for one object"
  let articles: [Article] = [.qiu]
  let claim = """
    A small class makes resident threads: one that is there for the whole program, others by identity, each made once and \
    kept, and such as belong to an object and end with it.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    The code of the article; R113 of Core Foundation: a thread's loop is the same until the thread ends.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "four threads ask at once for the thread of one name", Shared(bench).askAtOnce(),
        requires: "objects: 1, threads that ran the tasks: 1")
      outcome.observe(
        "two names are asked for, each three times", Shared(bench).askByName(),
        requires: "threads that ran the tasks: 2; given up: finished, finished")
      outcome.observe(
        "an object with the articles' thread is released", articlesOwn(bench),
        requires: "begin task end dealloc")
      outcome.observe(
        "an object with a ResidentThread is released", ours(bench), requires: "task; the thread has finished")
      return outcome
    }
  }

  private func articlesOwn(_ bench: Bench) -> String {
    let watch: Watch
    do {
      let owned = PermanentThread(.flag, on: bench)
      watch = owned.watch
      watch.settle()
      owned.execute { [watch] in watch.events.write("task") }
      watch.settle()
      withExtendedLifetime(owned) {}
    }
    watch.settle()
    watch.cut()
    watch.waitForRelease()
    return watch.events.text
  }

  private func ours(_ bench: Bench) -> String {
    let events = Record()
    let thread: Thread
    do {
      guard let owned = try? ResidentThread(name: "owned") else { return "no thread" }
      thread = owned.thread
      _ = try? owned.perform { events.write("task") }
    }
    let isOver = bench.answer { try thread.join(timeout: bench.meeting.patience) } == "accepted"
    bench.log.write("owned: \(events.text)")
    return "\(events.text); the thread has \(isOver && thread.isFinished ? "finished" : "not finished")"
  }
}

/// Threads shared under names that no other experiment uses.
private struct Shared {
  // Relaxed: only uniqueness is needed.
  private static let number = Atomic<Int>(0)

  private let bench: Bench
  private let suffix: String

  init(_ bench: Bench) {
    self.bench = bench
    suffix = " of the laboratory \(Self.number.wrappingAdd(1, ordering: .relaxed).newValue)"
  }

  func askAtOnce() -> String {
    let name = "default" + suffix
    let threads = ThreadCount()
    let askers = (0..<4).map { _ in
      startThread {
        let shared = ResidentThread.shared(name)
        try? shared.performAndWait(timeout: bench.meeting.patience) { threads.note() }
        return ObjectIdentifier(shared)
      }
    }
    let objects = Set(askers.map { $0.result() })
    bench.log.write("default: asked by four threads")
    _ = giveUp(name)
    return "objects: \(objects.count), threads that ran the tasks: \(threads.count)"
  }

  func askByName() -> String {
    let threads = ThreadCount()
    let names = ["network", "disk"]
    for name in names + names + names {
      bench.log.write("\(name): asked for")
      try? ResidentThread.shared(name + suffix).performAndWait(timeout: bench.meeting.patience) { threads.note() }
    }
    let ends = names.map { giveUp($0 + suffix) }
    return "threads that ran the tasks: \(threads.count); given up: \(ends.joined(separator: ", "))"
  }

  /// Releases a shared thread, and describes what happens to it.
  private func giveUp(_ name: String) -> String {
    let thread = ResidentThread.removeShared(name)?.thread
    _ = try? thread?.join(timeout: bench.meeting.patience)
    return thread?.isFinished == true ? "finished" : "not finished"
  }
}
