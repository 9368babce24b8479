// SPDX-License-Identifier: Apache-2.0

/// The timers that have fired late because their loops had too much to do.
///
/// A thread that gets no processor fires its timers late too, which is no fault of its loop's: for how long it could
/// run and had none does not count.
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
    /// What its thread's clock said, from which on its lateness is explained.
    var clock: ThreadClock?
  }

  private static let limit: Int64 = 100_000_000
  /// How old the clock of a loop that is busy becomes.
  private static let period: Int64 = 1_000_000_000

  private var loops: [Int: Loop] = [:]
  private var found: [Timer] = []

  package init() {}

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
      loops[slot] = Loop(generation: generation, count: count, clock: read()?.clock)
      return
    }
    defer { loops[slot] = loop }
    let isOld = isBusy && loop.clock.map { now - $0.time > Lateness.period } ?? true
    guard count > loop.count || isOld else { return }
    let reading = read()
    defer { loop.clock = reading?.clock ?? loop.clock }
    guard let timer, count > loop.count else { return }
    loop.count = count
    guard let reading, let before = loop.clock else { return }
    add(timer, thread, starved: reading.clock.starvation(since: before, isRunnable: reading.isRunnable))
  }

  private mutating func add(_ timer: LateTimer, _ thread: Int32, starved: Int64) {
    guard timer.late - starved >= Lateness.limit else { return }
    let known = found.firstIndex { $0.thread == thread && $0.code == timer.code }
    let late = max(timer.late, known.map { found[$0].late } ?? 0)
    if let known { found.remove(at: known) }
    // The functions are the process's own claim: a few are enough.
    if found.count < 32 { found.append(Timer(thread: thread, code: timer.code, late: late)) }
  }
}
