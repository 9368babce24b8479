// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import TestSupport

// The parts that watch loops.
extension Parts {
  /// A call-out that hangs is reported with its stack, or with the reason why the stack is unavailable.
  @Sendable static func hangs() throws {
    let worker = try ResidentThread(name: "hanging")
    defer { worker.stop() }
    for isBlocked in [true, false] {
      let found = Flag()
      let report = Box<HangReport?>(nil)
      let over = Flag()
      let watch = HangWatch(.init(threshold: .milliseconds(60), backlog: nil, loops: [worker.runLoop])) { hang in
        guard hang.end == nil, report.value == nil else { return }
        report.value = hang
        found.set()
      }
      try check(watch.isWatching, "a watch")
      try worker.perform { if isBlocked { hangBlocked(over) } else { hangRunning(found) } }
      if isBlocked { found.wait() } else { while report.value == nil { usleep(1000) } }
      over.set()
      found.set()
      try worker.performAndWait {}
      withExtendedLifetime(watch) {}
      guard let hang = report.value else { throw Missing(what: "a report") }
      let kind = isBlocked ? "blocked" : "running"
      if let problem = hang.stackProblem { throw Missing(what: "the stack of a \(kind) thread: \(problem)") }
      try check(
        hang.stack.count > 2, "the stack of a \(kind) thread, which has \(hang.stack.count) addresses, and a reason")
    }
  }

  @inline(never)
  private static func hangBlocked(_ over: Flag) { over.wait() }

  @inline(never)
  private static func hangRunning(_ over: Flag) { while !over.isSet {} }

  @Sendable static func metrics() throws {
    let holder = Instruments.hold(.record)
    let worker = try ResidentThread(name: "measured")
    for _ in 0..<10 { try worker.performAndWait {} }
    guard let metrics = Instruments.metrics(of: worker.runLoop) else { throw Missing(what: "metrics") }
    try check(Instruments.directory != nil, "a directory of the records")
    try check(metrics.posted >= 10, "the posts, of which there are \(metrics.posted)")
    worker.stop()
    try worker.join()
    withExtendedLifetime(holder) {}
  }
}

/// A flag that another thread sets.
final class Flag: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
  var isSet: Bool { sem_trywait(semaphore) == 0 }
}
