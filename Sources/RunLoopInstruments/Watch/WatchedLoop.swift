// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// A call-out that has lasted at least half the threshold.
final class WatchedLoop {
  let face: crl_face
  let number: UInt64
  let generation: UInt32
  let sampler: StackSampler
  let first: ThreadClock?
  var last: ThreadClock?
  private(set) var wasStopped = false
  /// The last reading of the thread's clock, and the total time that it spent without a processor.
  private var seen: ThreadClock?
  private(set) var starved: Int64 = 0
  private(set) var samples: [StackSample] = []

  init(_ face: crl_face, in memory: ProcessMemory, at now: Int64) {
    self.face = face
    number = face.number
    generation = face.generation
    sampler = StackSampler(thread: face.thread, in: memory)
    first = ThreadClock(thread: face.thread, of: memory.process, at: now)
    last = first
    seen = first
  }

  func isStopped(_ process: Int32) -> Bool {
    let isStopped = ThreadState(thread: face.thread, of: process) == .stopped || ThreadState.isTraced(process)
    wasStopped = isStopped && !samples.isEmpty
    return isStopped
  }

  /// The time since the last call that the thread spent runnable without a processor.
  func starvation(_ process: Int32, at now: Int64) -> Int64 {
    guard let clock = ThreadClock(thread: face.thread, of: process, at: now) else { return 0 }
    defer { seen = clock }
    guard let seen else { return 0 }
    let span = clock.starvation(since: seen, isRunnable: ThreadState(thread: face.thread, of: process) == .runs)
    starved += span
    return span
  }

  /// Adds a sample; every other sample is dropped when there are too many.
  func add(_ sample: StackSample) {
    samples.append(sample)
    if samples.count > 200 { samples = samples.indices.filter { $0 % 2 == 0 }.map { samples[$0] } }
  }
}
