// SPDX-License-Identifier: Apache-2.0

/// A judge's memory of one loop.
struct LoopHistory: Sendable {
  let generation: UInt32
  private var open: HangJudge.CallOut?
  private var since: Int64 = 0
  /// How long the open call-out is known to have run.
  private var counted: Int64 = 0
  /// Whether the call-out was already open at the first observation, so that its beginning is unknown.
  private(set) var isOlder = false
  private var isFound = false
  private var wasExcused = false
  /// When to take the next stack sample.
  private(set) var nextSample: Int64?
  private var samplingPeriod: Int64 = 0
  private var queue = QueueHistory()

  init(generation: UInt32) { self.generation = generation }

  mutating func see(
    _ look: HangJudge.Look, _ now: Int64, _ credit: HangJudge.Credit, between last: Int64,
    _ settings: HangJudge.Settings, _ verdicts: inout [HangJudge.Verdict]
  ) {
    seeCallOut(look, now, credit, last, settings, &verdicts)
    if let limit = settings.backlog {
      let isLong = isFound || counted >= settings.threshold / 2
      queue.see(look, now, isLong: isLong, limit: limit, &verdicts)
    }
  }

  private mutating func seeCallOut(
    _ look: HangJudge.Look, _ now: Int64, _ credit: HangJudge.Credit, _ last: Int64,
    _ settings: HangJudge.Settings, _ verdicts: inout [HangJudge.Verdict]
  ) {
    if let callOut = look.callOut, isSame(callOut) {
      if case .time(let time) = credit { counted += max(0, time - look.starved) } else { reset() }
    } else {
      endCallOut(look.slot, now, settings, &verdicts)
      open = look.callOut
      // Nothing is known from before the first observation.
      isOlder = last == now && look.callOut != nil && look.callOut?.began == nil
      guard let callOut = look.callOut else { return }
      // Without a recorded time, it began between the two observations, and counts from now on.
      since = callOut.began ?? last + (now - last) / 2
      if case .time(let time) = credit, let began = callOut.began { counted = max(0, min(now - began, time)) }
    }
    if look.isExcused {
      reset()
      return
    }
    sample(look.slot, now, settings, &verdicts)
    if !isFound, counted >= settings.threshold {
      isFound = true
      verdicts.append(.found(slot: look.slot, since: since))
    }
  }

  private func isSame(_ callOut: HangJudge.CallOut) -> Bool {
    callOut.number == open?.number && callOut.progress == open?.progress
  }

  /// Discards the counted time, which was not the call-out's fault.
  private mutating func reset() {
    counted = 0
    wasExcused = true
    nextSample = nil
  }

  /// Samples frequently until the call-out is a hang, and then at increasing intervals.
  private mutating func sample(
    _ slot: Int, _ now: Int64, _ settings: HangJudge.Settings, _ verdicts: inout [HangJudge.Verdict]
  ) {
    guard isFound || counted >= settings.threshold / 2 else { return }
    if let nextSample, now < nextSample { return }
    if nextSample == nil { samplingPeriod = settings.samplingPeriod }
    verdicts.append(.sample(slot: slot))
    if isFound { samplingPeriod = min(2 * samplingPeriod, 1_000_000_000) }
    nextSample = now + samplingPeriod
  }

  private mutating func endCallOut(
    _ slot: Int, _ now: Int64, _ settings: HangJudge.Settings?, _ verdicts: inout [HangJudge.Verdict]
  ) {
    if isFound {
      verdicts.append(.over(slot: slot, isBacklog: false, at: now))
      queue.noteHang(now)
    } else if let open, let settings, !wasExcused, counted >= settings.threshold / 2 {
      verdicts.append(.doubtful(slot: slot, number: open.number, since: since))
    }
    open = nil
    counted = 0
    isFound = false
    wasExcused = false
    nextSample = nil
  }

  /// Ends the history, because the loop has ended.
  mutating func end(_ slot: Int, _ now: Int64, _ verdicts: inout [HangJudge.Verdict]) {
    endCallOut(slot, now, nil, &verdicts)
    queue.end(slot, now, &verdicts)
  }
}

/// The waiting times of posts in one loop.
private struct QueueHistory: Sendable {
  /// The number of posts at each observation since the oldest waiting one; thinned out when there are many.
  private var arrivals: [(time: Int64, posted: UInt64)] = []
  /// The number of posts that wait for a mode other than the running one, measured while the loop sleeps.
  private var stuck: UInt64 = 0
  /// When the last hang ended, to which earlier waiting is attributed.
  private var lastHang: Int64 = .min
  private var isFound = false

  mutating func noteHang(_ now: Int64) { lastHang = now }

  mutating func see(
    _ look: HangJudge.Look, _ now: Int64, isLong: Bool, limit: Int64, _ verdicts: inout [HangJudge.Verdict]
  ) {
    if look.isAsleep {
      stuck = look.posted &- look.served
      arrivals.removeAll(keepingCapacity: true)
      end(look.slot, now, &verdicts)
      return
    }
    if isLong || look.isExcused { lastHang = now }
    if arrivals.last?.posted != look.posted {
      if arrivals.count == 64 { arrivals = arrivals.indices.filter { $0 % 2 == 0 }.map { arrivals[$0] } }
      arrivals.append((now, look.posted))
    }
    let oldest = look.served &+ stuck &+ 1
    arrivals.removeAll { $0.posted < oldest }
    guard let since = arrivals.first.map({ max($0.time, lastHang) }), now - since >= (isFound ? limit / 2 : limit)
    else {
      end(look.slot, now, &verdicts)
      return
    }
    if !isFound {
      isFound = true
      verdicts.append(.sample(slot: look.slot))
      verdicts.append(.backlog(slot: look.slot, since: since))
    }
  }

  mutating func end(_ slot: Int, _ now: Int64, _ verdicts: inout [HangJudge.Verdict]) {
    if isFound { verdicts.append(.over(slot: slot, isBacklog: true, at: now)) }
    isFound = false
  }
}
