// SPDX-License-Identifier: Apache-2.0

/// What a program's call-outs, runs and questions gave, in order.
package struct Log: Hashable, Sendable {
  package var entries: [Entry] = []

  package init(_ entries: [Entry] = []) { self.entries = entries }

  /// How many entries a log holds; a program that fills its log has ended.
  package static let limit = 400

  package var isFull: Bool { entries.count >= Self.limit }

  package struct Entry: Hashable, Sendable {
    package var event: Event
    /// The state when it happened.
    package var state: State

    package init(_ event: Event, _ state: State) {
      self.event = event
      self.state = state
    }
  }

  package enum Event: Hashable, Sendable {
    /// An observer was called for one activity, by Core Foundation's bit.
    case observer(Int, UInt)
    case source(Int)
    case timer(Int)
    case block(Int)
    /// A source that tells its modes has entered one, or left it; also at the end of the loop's thread, after the
    /// program's.
    case entered(Int, ModeName)
    case left(Int, ModeName)
    case ranWith(RunOutcome)
    /// A run that does not tell its result has ended.
    case ranUntilStopped
    case answer(Question, Answer)
    /// The loop is about to sleep, and nothing is to wake it; it is stopped then.
    ///
    /// The tick is the one at which it went to sleep.
    case asleepForEver
    /// The program did not come to its end; no model says so.
    case hung
  }

  /// What could be seen of the loop, from within a call-out or between runs.
  package struct State: Hashable, Sendable {
    package var tick: Int
    /// How many runs are active.
    package var depth: Int
    /// The mode that runs.
    package var mode: ModeName?
    package var isWaiting: Bool

    package init(tick: Int, depth: Int, mode: ModeName?, isWaiting: Bool) {
      self.tick = tick
      self.depth = depth
      self.mode = mode
      self.isWaiting = isWaiting
    }
  }
}

/// The raw values are Core Foundation's.
package enum RunOutcome: Int32, Hashable, Sendable {
  case finished = 1
  case stopped = 2
  case timedOut = 3
  case handledSource = 4
}

package enum Answer: Hashable, Sendable {
  case bool(Bool)
  /// A date in ticks; nil: none.
  case tick(Int?)
  case modes(Set<ModeName>)
}

/// Something that runs programs.
package protocol Machine: Sendable {
  func run(_ program: Program) -> Log
}
