// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The timers that fired late, and the descriptors that were served late, because their loops were too busy.
///
/// Both are also late if their thread gets no processor, which is not the loop's fault. Time in which the thread
/// was runnable without a processor, or in which the process was stopped, is not counted.
package struct Lateness: Sendable {
  /// The function of a timer or descriptor, and its maximum lateness.
  package struct Item: Sendable, Hashable {
    package let thread: Int32
    package let code: UInt64
    package let late: Int64
    package let isDescriptor: Bool
  }

  private struct Loop {
    let generation: UInt32
    var count: UInt64
    var look: Int64
    /// The reading of its thread's clock from which lateness is explained.
    var clock: ThreadClock?
  }

  private let limit: Int64
  /// The maximum age of a busy loop's clock reading.
  private static let period: Int64 = 1_000_000_000

  private var loops: [Int: Loop] = [:]
  private var found: [Item] = []

  /// The observed periods in which the process was stopped.
  private var stops: [Range<Int64>] = []
  private var wasStopped = false
  private var lastLook: Int64?

  /// - Parameter limit: The lateness in nanoseconds from which timers are recorded. Values below `CRL_LATE` are
  ///   unknown.
  package init(limit: Int64 = CRL_LATE) { self.limit = limit }

  /// Notes whether the process is stopped.
  ///
  /// Must precede the notes of the same observation about its loops.
  package mutating func noteProcess(isStopped: Bool, at now: Int64) {
    // The process was stopped or continued between the observations. Zero is the time at which the machine started.
    let begin = lastLook ?? (isStopped ? 0 : now)
    if isStopped || wasStopped, begin < now {
      let isSame = stops.last?.upperBound == begin
      stops.append((isSame ? stops.removeLast().lowerBound : begin)..<now)
      if stops.count > 8 { stops.removeFirst() }
    }
    (wasStopped, lastLook) = (isStopped, now)
  }

  /// The observed time between a date and an observation in which the process was stopped.
  private func stopped(from begin: Int64, to end: Int64) -> Int64 {
    stops.map { max(0, min($0.upperBound, end) - max($0.lowerBound, begin)) }.reduce(0, +)
  }

  package var items: [Item] { found.sorted { ($0.late, $1.code) > ($1.late, $0.code) } }

  /// Notes an observation of a loop.
  ///
  /// - Parameter read: Reads the clock of its thread, and whether the thread is runnable.
  package mutating func note(
    _ service: LateService?, _ slot: Int, _ generation: UInt32, _ thread: Int32, isBusy: Bool, at now: Int64,
    read: () -> (clock: ThreadClock, isRunnable: Bool)?
  ) {
    let count = service?.count ?? 0
    guard var loop = loops[slot], loop.generation == generation else {
      // Lateness from before the first observation is ignored.
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
    guard let service, count > loop.count else { return }
    loop.count = count
    guard let reading, let before = loop.clock else { return }
    // It was served after the previous observation.
    let stopped = stopped(from: loop.look - service.late, to: now)
    add(service, thread, starved: reading.clock.starvation(since: before, isRunnable: reading.isRunnable) + stopped)
  }

  private mutating func add(_ service: LateService, _ thread: Int32, starved: Int64) {
    guard service.late - starved >= limit else { return }
    let known = found.firstIndex { $0.thread == thread && $0.code == service.code }
    let late = max(service.late, known.map { found[$0].late } ?? 0)
    if let known { found.remove(at: known) }
    // Limited, because the functions are untrusted data.
    guard found.count < 32 else { return }
    found.append(Item(thread: thread, code: service.code, late: late, isDescriptor: service.isDescriptor))
  }
}
