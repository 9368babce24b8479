// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Detects hangs from observations of the loops.
///
/// A call-out that stays open and unchanged for the threshold is a hang. A nested run that sleeps or makes progress
/// has call-outs of its own, so the outer one is not open. The judge has no access to clocks or processes: the caller
/// passes in timed observations, acts on the verdicts, and observes again at ``nextLook``.
package struct HangJudge: Sendable {
  /// The thresholds for hangs and backlogs, in nanoseconds.
  package struct Settings: Sendable, Hashable {
    /// The time after which an open call-out is a hang.
    package var threshold: Int64
    /// The waiting time of the oldest post that makes a backlog, or nil to ignore backlogs.
    package var backlog: Int64?
    /// The maximum delay of an observation for which the entire time since the last one still counts.
    ///
    /// A delay of a watcher inside the process usually affects its loops as well.
    package var tolerance: Int64

    package init(threshold: Int64, backlog: Int64? = nil, tolerance: Int64? = nil) {
      self.threshold = max(1, threshold)
      self.backlog = backlog.map { max(1, $0) }
      self.tolerance = tolerance ?? self.threshold / 8
    }

    /// The settings of the tool.
    package static func tool(threshold: Int64 = CRL_HANG, backlog: Int64? = nil) -> Settings {
      Settings(threshold: threshold, backlog: backlog ?? 2 * threshold, tolerance: threshold)
    }
    package static let standard = tool()

    /// The interval between observations of open call-outs.
    package var period: Int64 { max(1, threshold / 4) }
    /// The interval between stack samples of a call-out that has reached half the threshold.
    package var samplingPeriod: Int64 { max(1, threshold / 8) }
  }

  /// The open call-out of a loop.
  package struct CallOut: Sendable, Hashable {
    /// A number that identifies it within its loop.
    package var number: UInt64
    /// A value that also changes when something without a number happens.
    package var progress: UInt64
    /// When it began, if known.
    package var began: Int64?

    package init(number: UInt64, progress: UInt64 = 0, began: Int64? = nil) {
      self.number = number
      self.progress = progress
      self.began = began
    }
  }

  /// An observation of a loop.
  package struct Look: Sendable {
    /// The slot that identifies the loop.
    package var slot: Int
    package var generation: UInt32
    package var callOut: CallOut?
    package var isAsleep: Bool
    /// Whether the loop was stopped, traced, or in a call that is expected to be long.
    package var isExcused: Bool
    /// The time since the last observation in which its thread was runnable without a processor, as far as known.
    ///
    /// This time does not count towards a hang.
    package var starved: Int64
    package var posted: UInt64
    package var served: UInt64

    package init(
      slot: Int, generation: UInt32 = 1, callOut: CallOut? = nil, isAsleep: Bool = false, isExcused: Bool = false,
      starved: Int64 = 0, posted: UInt64 = 0, served: UInt64 = 0
    ) {
      self.slot = slot
      self.generation = generation
      self.callOut = callOut
      self.isAsleep = isAsleep
      self.isExcused = isExcused
      self.starved = starved
      self.posted = posted
      self.served = served
    }
  }

  /// An action to take for a loop.
  package enum Verdict: Sendable, Hashable {
    /// Sample the loop's stack.
    case sample(slot: Int)
    /// The loop hangs, since a given time.
    case found(slot: Int, since: Int64)
    /// The call-out ended soon after half the threshold.
    ///
    /// The caller may know its exact duration and report a hang.
    case doubtful(slot: Int, number: UInt64, since: Int64)
    /// Posts have waited too long, the oldest since a given time, although no call-out is long.
    case backlog(slot: Int, since: Int64)
    /// The loop's hang or backlog ended, at about this time.
    case over(slot: Int, isBacklog: Bool, at: Int64)
  }

  private let settings: Settings
  private var loops: [Int: LoopHistory] = [:]
  private var lastLook: Int64?
  private var quietLooks = 0
  /// When to observe again, or nil to wait until a loop becomes active.
  package private(set) var nextLook: Int64?

  package init(_ settings: Settings) { self.settings = settings }

  /// Evaluates the observations of all loops at a time.
  ///
  /// - Complexity: O(*n*), where *n* is the number of loops.
  package mutating func judge(_ looks: [Look], at now: Int64) -> [Verdict] {
    let credit = credit(at: now)
    var verdicts: [Verdict] = []
    let isGone = Set(loops.keys).subtracting(looks.map(\.slot))
    for slot in isGone.sorted() {
      loops[slot]?.end(slot, now, &verdicts)
      loops[slot] = nil
    }
    for look in looks {
      var history = loops[look.slot] ?? LoopHistory(generation: look.generation)
      if history.generation != look.generation {
        history.end(look.slot, now, &verdicts)
        history = LoopHistory(generation: look.generation)
      }
      history.see(look, now, credit, between: lastLook ?? now, settings, &verdicts)
      loops[look.slot] = history
    }
    lastLook = now
    let isQuiet = looks.allSatisfy(\.isAsleep)
    quietLooks = isQuiet ? quietLooks + 1 : 0
    let sampling = loops.values.contains { $0.nextSample != nil }
    nextLook = quietLooks >= 2 ? nil : now + (sampling ? settings.samplingPeriod : settings.period)
    return verdicts
  }

  /// Whether a loop's call-out was already open at the first observation, so that it began at an unknown earlier time.
  package func isOlder(_ slot: Int) -> Bool { loops[slot]?.isOlder ?? false }

  /// Resumes after a pause, which does not count.
  package mutating func resume(at now: Int64) {
    lastLook = now
    nextLook = now
    quietLooks = 0
  }

  /// How much of the time since the last observation counts.
  enum Credit {
    case time(Int64)
    /// The process or the system was not running.
    case none
  }

  private func credit(at now: Int64) -> Credit {
    guard let lastLook else { return .time(0) }
    let late = now - (nextLook ?? now)
    if late <= settings.tolerance { return .time(now - lastLook) }
    if late > max(settings.threshold, settings.tolerance) { return .none }
    return .time((nextLook ?? now) - lastLook)
  }
}
