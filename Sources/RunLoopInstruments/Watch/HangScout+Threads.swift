// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

extension HangScout {
  /// Reports what any thread of the process is doing and waiting for, with or without a loop, or nil if it has ended.
  package func standing(ofThread thread: Int32, at now: Int64) -> HangReport? {
    let state = ThreadState(thread: thread, of: memory.process)
    guard state != .ended else { return nil }
    let slot = slot(ofThread: thread)
    let face = slot.map { faces.face($0) }
    let sampler = StackSampler(thread: thread, in: memory)
    let sample = sampler.sample(limit: face?.stack ?? 0, awaited: face?.awaited ?? 0).first
    var report = HangReport(
      loop: face?.loop ?? 0, thread: thread, threadName: name(ofThread: thread), kind: nil, code: nil, postedFrom: nil,
      mode: nil, depth: Int(face?.depth ?? 0), begin: now, isOlder: true, end: nil,
      processor: state == .runs ? .onCPU : state == .stopped ? .stopped : .blocked, shares: nil,
      blockedIn: sample?.blockedIn, waitsFor: sample?.waitsFor, waitsForName: nil, stack: [], stackCounts: nil,
      provedFrames: sample?.proved, stackProblem: sampler.problem(hasSamples: sample != nil) ?? sample?.gap,
      samples: 0, isBacklog: false, sites: [], leftOut: 0)
    report.stack = sample?.addresses.map { address($0) } ?? []
    report.waitsForName = sample?.waitsFor.map { name(ofThread: $0) }
    return report
  }
}
