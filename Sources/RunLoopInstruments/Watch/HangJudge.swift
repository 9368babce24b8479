// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Decides what is a hang, from what was seen of the loops at some times.
///
/// A call-out that is open and unchanged for the threshold is a hang. A nested run that sleeps or goes on has call-outs
/// of its own, so that the one around it is not open. The judge knows no clock and no process: whoever looks says what
/// was seen and when, does what the verdicts ask for, and looks again at ``nextLook``.
package struct HangJudge: Sendable {
  /// What is a hang, in nanoseconds.
  package struct Settings: Sendable, Hashable {
    /// From when on an open call-out is a hang.
    package var threshold: Int64
    /// From when on the oldest waiting post is a backlog; nil: never.
    package var backlog: Int64?
    /// By how much a look may be late and all the time since the last look counts still.
    ///
    /// What makes a watcher within the process late also keeps its loops from running.
    package var tolerance: Int64

    package init(threshold: Int64, backlog: Int64? = nil, tolerance: Int64? = nil) {
      self.threshold = max(1, threshold)
      self.backlog = backlog.map { max(1, $0) }
      self.tolerance = tolerance ?? self.threshold / 8
    }

    /// What the tool takes for a hang or a backlog.
    package static func tool(threshold: Int64 = CRL_HANG, backlog: Int64? = nil) -> Settings {
      Settings(threshold: threshold, backlog: backlog ?? 2 * threshold, tolerance: threshold)
    }
    package static let standard = tool()

    /// How often open call-outs are looked at.
    package var period: Int64 { max(1, threshold / 4) }
    /// How often the stack of one that is half a hang is sampled.
    package var samplingPeriod: Int64 { max(1, threshold / 8) }
  }

  /// What is open in a loop.
  package struct CallOut: Sendable, Hashable {
    /// Tells it from others of its loop.
    package var number: UInt64
    /// What changes too if something happens that has no number.
    package var progress: UInt64
    /// When it began, if that is known.
    package var began: Int64?

    package init(number: UInt64, progress: UInt64 = 0, began: Int64? = nil) {
      self.number = number
      self.progress = progress
      self.began = began
    }
  }

  /// What was seen of a loop.
  package struct Look: Sendable {
    /// Which loop it is.
    package var slot: Int
    package var generation: UInt32
    package var callOut: CallOut?
    package var isAsleep: Bool
    /// Whether it was stopped, traced, or in a call that is expected to be long.
    package var isExcused: Bool
    /// How much of the time since the last look its thread could have run and had no processor, as far as that is
    /// known: a call-out is no hang because others take the processor from it.
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

  /// What is to be done about a loop.
  package enum Verdict: Sendable, Hashable {
    /// Its stack is to be sampled.
    case sample(slot: Int)
    /// It hangs, since a time.
    case found(slot: Int, since: Int64)
    /// Its call-out was over soon after half the threshold: whoever knows how long it took may still call it a hang.
    case doubtful(slot: Int, number: UInt64, since: Int64)
    /// Posts wait too long, though no call-out is long; the oldest has waited since a time.
    case backlog(slot: Int, since: Int64)
    /// What was found of it is over, at about this time.
    case over(slot: Int, isBacklog: Bool, at: Int64)
  }

  private let settings: Settings
  private var loops: [Int: LoopHistory] = [:]
  private var lastLook: Int64?
  private var quietLooks = 0
  /// When to look again; nil: when a loop has begun to do something.
  package private(set) var nextLook: Int64?

  package init(_ settings: Settings) { self.settings = settings }

  /// Judges what was seen of all loops at a time.
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

  /// Whether what is open in a loop was so when it was first looked at, so that it has lasted longer than is known.
  package func isOlder(_ slot: Int) -> Bool { loops[slot]?.isOlder ?? false }

  /// Looks again after a park, of which nothing counts.
  package mutating func resume(at now: Int64) {
    lastLook = now
    nextLook = now
    quietLooks = 0
  }

  /// What counts of the time since the last look.
  enum Credit {
    case time(Int64)
    /// The whole process, or the system, was not running.
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
