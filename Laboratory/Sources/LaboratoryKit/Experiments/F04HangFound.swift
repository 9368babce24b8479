// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import Synchronization

/// F4: a hanging call-out, observed from another thread: its kind, its stack and its origin.
struct HangFound: Experiment {
  let id = "F4"
  let title = "A hang, its stack and its cause"
  let articles: [Article] = [.xilankong]
  let claim = """
    A loop that stays in one call-out for too long is stuck: whoever watches the loop's states from another thread can find that out \
    and print the stack of the thread.
    """
  let needsRecords = true
  let verdict = Verdict.corrected(
    """
    The states alone tell which stage hangs, and a stack that is taken when the time is over blames what runs last. What was called, \
    who posted it and what the thread is blocked in has to be noted before.
    """)
  let evidence = """
    The article's monitor, whose observer notes beforeSources and afterWaiting for a thread that waits for a semaphore with a timeout.
    """
  let difference = Difference.addition(
    """
    HangWatch finds it without an observer. The thread is not touched: its stack is read while it is blocked, and the call goes on.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      var hang = seen(on: rig, bench)
      // A thread that had to wait for a processor may not have reached its call when it was sampled. Then it is
      // repeated.
      for _ in 0..<10 where hang.cameEarly { hang = seen(on: rig, bench) }

      var outcome = Outcome()
      outcome.observe(
        "what is reported while the call-out lasts", hang.describe(\.kind) { "\($0 ?? "nothing"), in \(hang.mode)" },
        requires: "block, in kCFRunLoopDefaultMode of depth 1, not over")
      outcome.observe(
        "what its thread does", hang.describe(\.blockedIn) { $0.map { "blocked in \($0.call)" } ?? "nothing" },
        requires: "blocked in poll")
      outcome.observe(
        "its stack, beside what the thread itself says who has called it", hang.comparison,
        requires: "the same callers, up to runLoopIsCallingOutToABlock")
      outcome.observe(
        "its code and the place that it was posted from", hang.origin, requires: "both in this program")
      outcome.observe("how the blocking call ends", hang.answer, requires: "not interrupted: 1 descriptor is ready")
      outcome.observe(
        "what is reported when it is over", hang.ending, requires: "the same hang, with its end")
      return outcome
    }
  }

  /// Makes a call-out hang while it is observed.
  private func seen(on rig: Rig, _ bench: Bench) -> Hang {
    let hang = Hang(rig, bench)
    hang.lookOn()
    // The origin of the block is this post.
    rig.loop.perform { hang.block() }
    rig.loop.perform { rig.note("the next block: the loop goes on") }
    rig.loop.run(mode: .default, for: .seconds(1))
    hang.lookAway()
    return hang
  }
}

/// A call-out that waits for a descriptor until its hang has been reported; can be used from any thread.
private final class Hang: Sendable {
  private struct State {
    var watch: HangWatch?
    var found: HangReport?
    var over: HangReport?
    var callers: [Caller] = []
    var answer: Int32?
  }

  private let rig: Rig
  private let meeting: Meeting
  private let pipe = Pipe()
  private let state = Mutex(State())

  init(_ rig: Rig, _ bench: Bench) {
    self.rig = rig
    meeting = bench.meeting
  }

  func lookOn() {
    let configuration = HangWatch.Configuration(backlog: nil, loops: [rig.loop], level: .record)
    let watch = HangWatch(configuration) { [weak self] in self?.take($0) }
    state.withLock { $0.watch = watch }
  }

  /// Waits until the end is reported, if there was a hang.
  func lookAway() {
    if state.withLock({ $0.found }) != nil { meeting.wait { state.withLock { $0.over } != nil } }
    let watch = state.withLock { state in
      defer { state.watch = nil }
      return state.watch
    }
    withExtendedLifetime(watch) {}
  }

  private func take(_ report: HangReport) {
    state.withLock { if report.end == nil { $0.found = report } else { $0.over = report } }
    if report.end == nil { pipe.write() }
    meeting.announce()
  }

  /// The call-out that hangs.
  @inline(never)
  func block() {
    let callers = callers()
    rig.note("a block begins that waits for a pipe")
    var entry = pollfd(fd: pipe.reading, events: Int16(POLLIN), revents: 0)
    let patience = Int32(clamping: meeting.patience.components.seconds * 1000 + 500)
    let answer = poll(&entry, 1, patience)
    rig.note("the hang was reported, and the pipe has a byte: the block goes on")
    state.withLock { state in
      state.callers = callers
      state.answer = answer
    }
  }

  private var found: HangReport? { state.withLock { $0.found } }

  /// Whether the hang was reported before its thread was blocked.
  var cameEarly: Bool { found.map { $0.blockedIn == nil } ?? false }

  func describe<Value>(_ part: (HangReport) -> Value, _ text: (Value) -> String) -> String {
    found.map { text(part($0)) } ?? "nothing is reported"
  }

  var mode: String {
    guard let found else { return "none" }
    return "\(found.mode ?? "none") of depth \(found.depth), \(found.end == nil ? "not over" : "over")"
  }

  var comparison: String {
    let callers = state.withLock { $0.callers }
    guard let found, let first = callers.first?.address else { return "nothing to compare" }
    // The innermost functions belong to the blocking call.
    let stack = found.stack.map(\.address).drop { $0 != first }
    let isSame = !stack.isEmpty && callers.map(\.address).starts(with: stack)
    let callOut = callers.prefix(stack.count).lazy.compactMap { $0.callOut }.first
    return "\(isSame ? "the same" : "other") callers, up to \(callOut ?? "none")"
  }

  var origin: String {
    guard let found, let program = found.stack.last?.image else { return "nothing" }
    let images = [found.code?.image, found.postedFrom?.image]
    return images == [program, program] ? "both in this program" : "elsewhere"
  }

  var answer: String {
    switch state.withLock({ $0.answer }) {
    case nil: "it was not made"
    case 1: "not interrupted: 1 descriptor is ready"
    case 0: "nothing came"
    case let other?: "\(other)"
    }
  }

  var ending: String {
    let (found, over) = state.withLock { ($0.found, $0.over) }
    guard let found, let over else { return "nothing" }
    let isSame = found.begin == over.begin && found.thread == over.thread
    return
      "\(isSame ? "the same" : "another") hang, \((over.end ?? 0) > over.begin ? "with its end" : "without an end")"
  }
}
