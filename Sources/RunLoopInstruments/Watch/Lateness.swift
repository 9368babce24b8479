// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The timers that have fired late because their loops had too much to do.
///
/// A thread that gets no processor fires its timers late too, which is no fault of its loop's: for how long it could
/// run and had none does not count, and nor does the time in which its process was stopped.
package struct Lateness: Sendable {
  /// A timer's function, and by how much it was late at most.
  package struct Timer: Sendable, Hashable {
    package let thread: Int32
    package let code: UInt64
    package let late: Int64
  }

  private struct Loop {
    let generation: UInt32
    var count: UInt64
    var look: Int64
    /// What its thread's clock said, from which on its lateness is explained.
    var clock: ThreadClock?
  }

  private let limit: Int64
  /// How old the clock of a loop that is busy becomes.
  private static let period: Int64 = 1_000_000_000

  private var loops: [Int: Loop] = [:]
  private var found: [Timer] = []

  /// When the process was stopped, as far as that was seen.
  private var stops: [Range<Int64>] = []
  private var wasStopped = false
  private var lastLook: Int64?

  /// - Parameter limit: From how many nanoseconds on a timer is late; those that are less late than `CRL_LATE` are not
  ///   known.
  package init(limit: Int64 = CRL_LATE) { self.limit = limit }

  /// Notes whether the process is stopped at a look, before what its loops show at that look.
  package mutating func noteProcess(isStopped: Bool, at now: Int64) {
    // It was stopped or continued somewhere between the looks.
    // The clock begins with the machine.
    let begin = lastLook ?? (isStopped ? 0 : now)
    if isStopped || wasStopped, begin < now {
      let isSame = stops.last?.upperBound == begin
      stops.append((isSame ? stops.removeLast().lowerBound : begin)..<now)
      if stops.count > 8 { stops.removeFirst() }
    }
    (wasStopped, lastLook) = (isStopped, now)
  }

  /// How much of the time between a date and a look the process was stopped, as far as it can have been seen.
  private func stopped(from begin: Int64, to end: Int64) -> Int64 {
    stops.map { max(0, min($0.upperBound, end) - max($0.lowerBound, begin)) }.reduce(0, +)
  }

  package var timers: [Timer] { found.sorted { ($0.late, $1.code) > ($1.late, $0.code) } }

  /// Notes what a loop shows at a look.
  ///
  /// - Parameter read: Reads the clock of its thread, and whether it can run now.
  package mutating func note(
    _ timer: LateTimer?, _ slot: Int, _ generation: UInt32, _ thread: Int32, isBusy: Bool, at now: Int64,
    read: () -> (clock: ThreadClock, isRunnable: Bool)?
  ) {
    let count = timer?.count ?? 0
    guard var loop = loops[slot], loop.generation == generation else {
      // What was late before the first look is not this look's.
      loops[slot] = Loop(generation: generation, count: count, look: now, clock: read()?.clock)
      return
    }
    defer {
      loop.look = now
      loops[slot] = loop
    }
    let isOld = isBusy && loop.clock.map { now - $0.time > Lateness.period } ?? true
    guard count > loop.count || isOld else { return }
    let reading = read()
    defer { loop.clock = reading?.clock ?? loop.clock }
    guard let timer, count > loop.count else { return }
    loop.count = count
    guard let reading, let before = loop.clock else { return }
    // It fired since the last look.
    let stopped = stopped(from: loop.look - timer.late, to: now)
    add(timer, thread, starved: reading.clock.starvation(since: before, isRunnable: reading.isRunnable) + stopped)
  }

  private mutating func add(_ timer: LateTimer, _ thread: Int32, starved: Int64) {
    guard timer.late - starved >= limit else { return }
    let known = found.firstIndex { $0.thread == thread && $0.code == timer.code }
    let late = max(timer.late, known.map { found[$0].late } ?? 0)
    if let known { found.remove(at: known) }
    // The functions are the process's own claim: a few are enough.
    if found.count < 32 { found.append(Timer(thread: thread, code: timer.code, late: late)) }
  }
}
