// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// All that a loop did, as its trace hook reported it.
final class Trace: Sendable {
  /// Whether a loop's clock moves.
  enum Progress {
    case moves
    /// A great many passes were made at one moment: the loop would go on without end.
    case standsStill
  }

  private struct State {
    var events: [RunLoop.TraceEvent] = []
    var passes = 0
    var moment = Tick.distantPast
  }

  /// More passes at one moment than any loop in order makes.
  private static let tooManyPasses = 1000

  private let state = Mutex(State())

  /// Notes an event, and whether the loop stands still.
  func write(_ event: RunLoop.TraceEvent) -> Progress {
    state.withLock { state in
      state.events.append(event)
      guard event.kind == .activity(.beforeTimers) else { return .moves }
      state.passes = event.time == state.moment ? state.passes + 1 : 0
      state.moment = event.time
      return state.passes < Self.tooManyPasses ? .moves : .standsStill
    }
  }

  /// The events so far.
  var events: [RunLoop.TraceEvent] { state.withLock { $0.events } }

  /// The kind of the innermost call-out that is being made, or `none`.
  ///
  /// Observers' call-outs are not among them.
  var callOut: String {
    var open: [String] = []
    for event in events {
      switch event.kind {
      case .callOut(let callOut): open.append(callOut.rawValue)
      case .callOutEnded: _ = open.popLast()
      case .activity, .sleep: break
      }
    }
    return open.last ?? "none"
  }

  /// The events so far in one word each, without the ends of the call-outs.
  var text: String { events.compactMap(\.word).joined(separator: " ") }
}

extension RunLoop.TraceEvent {
  /// The event in one word; nil for the end of a call-out.
  var word: String? {
    switch kind {
    case .activity(let activity): activity.name
    case .sleep: "sleep"
    case .callOut(let callOut): callOut.rawValue
    case .callOutEnded: nil
    }
  }
}
