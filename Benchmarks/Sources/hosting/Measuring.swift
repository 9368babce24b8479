// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

func nanoseconds() -> Int {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Measures all subjects in turn in each round.
func measure(_ count: Int) {
  let subjects = allSubjects()
  var posts = [[Int]](repeating: [], count: subjects.count)
  var passes = posts
  var timers = posts
  for round in 0..<count {
    // The first subject of a round rotates, so that none always has the same predecessor.
    for offset in subjects.indices {
      let index = (round + offset) % subjects.count
      posts[index].append(latencyOfPost(subjects[index]))
      if round % 4 == 0 { timers[index].append(latenessOfTimer(subjects[index])) }
      // A chain of blocks costs a pass for every two.
      if round % 20 == 0 { passes[index].append(costOfPass(subjects[index])) }
    }
  }
  for subject in subjects { subject.stop() }
  table("from a post by another thread to the block, ns", subjects, posts)
  table("how late a timer fires, ns", subjects, timers)
  table("a pass of a loop that always has blocks to run, ns", subjects, passes)
}

private func latencyOfPost(_ subject: any Subject) -> Int {
  awaitSleep(subject)
  let end = Moment()
  let start = nanoseconds()
  subject.perform { end.store(nanoseconds()) }
  return end.await() - start
}

private func latenessOfTimer(_ subject: any Subject) -> Int {
  let delay = 700_000
  let start = Moment()
  let end = Moment()
  subject.perform {
    start.store(nanoseconds())
    subject.after(delay) { end.store(nanoseconds()) }
  }
  return end.await() - start.await() - delay
}

/// Measures the time of a pass, each of which runs two of a chain of blocks that post each other: one before its
/// wait, one after.
private func costOfPass(_ subject: any Subject) -> Int {
  let length = 500
  let end = Moment()
  let chain = Chain(subject, length) { end.store(nanoseconds()) }
  let start = nanoseconds()
  subject.perform { chain.next() }
  return 2 * (end.await() - start) / length
}

private final class Chain: Sendable {
  private let subject: any Subject
  private let left: Atomic<Int>
  private let end: @Sendable () -> Void

  init(_ subject: any Subject, _ length: Int, _ end: @escaping @Sendable () -> Void) {
    self.subject = subject
    left = Atomic(length)
    self.end = end
  }

  func next() {
    guard left.wrappingSubtract(1, ordering: .relaxed).newValue > 0 else { return end() }
    subject.perform { self.next() }
  }
}

/// Waits until a loop sleeps, and a little longer, as it reports its sleep before it begins.
private func awaitSleep(_ subject: any Subject) {
  while !subject.isAsleep { sched_yield() }
  let start = nanoseconds()
  while nanoseconds() - start < 60_000 { sched_yield() }
}

/// Prints a table of values, and each as a multiple of the round's value for a loop alone on its futex.
private func table(_ title: String, _ subjects: [any Subject], _ values: [[Int]]) {
  print("\n\(title)\n")
  print("| loop | median | 90 of 100 | 99 of 100 | of the first |\n|---|---|---|---|---|")
  for (subject, column) in zip(subjects, values) {
    let sorted = column.sorted()
    let ratios = zip(column, values[0]).map { Double($0) / Double(max(1, $1)) }.sorted()
    let columns = [50, 90, 99].map { "\(sorted[min(sorted.count - 1, sorted.count * $0 / 100)])" }
    let ratio = (ratios[ratios.count / 2] * 100).rounded() / 100
    print("| \(subject.name) | \(columns.joined(separator: " | ")) | \(ratio) |")
  }
}
