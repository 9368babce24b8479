// SPDX-License-Identifier: Apache-2.0

/// The results of a program's call-outs, runs and questions, in order.
package struct Log: Hashable, Sendable {
  package var entries: [Entry] = []

  package init(_ entries: [Entry] = []) { self.entries = entries }

  /// The maximum number of entries; a program that fills its log has ended.
  package static let limit = 400

  package var isFull: Bool { entries.count >= Self.limit }

  package struct Entry: Hashable, Sendable {
    package var event: Event
    /// The state at the time of the event.
    package var state: State

    package init(_ event: Event, _ state: State) {
      self.event = event
      self.state = state
    }
  }

  package enum Event: Hashable, Sendable {
    /// An observer was called for one activity, given by Core Foundation's bit.
    case observer(Int, UInt)
    case source(Int)
    case timer(Int)
    case block(Int)
    /// A source with mode handlers was added to a mode or removed from it; also at the end of the loop's thread,
    /// after the program.
    case entered(Int, ModeName)
    case left(Int, ModeName)
    case ranWith(RunOutcome)
    /// A run without a result has ended.
    case ranUntilStopped
    case answer(Question, Answer)
    /// The loop is about to sleep, and nothing will wake it; it is then stopped.
    ///
    /// The tick is the one at which the sleep began.
    case asleepForEver
    /// The program did not end. The model never logs this.
    case hung
  }

  /// The observable state of the loop, within a call-out or between runs.
  package struct State: Hashable, Sendable {
    package var tick: Int
    /// The number of active runs.
    package var depth: Int
    /// The mode of the innermost run.
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

/// The outcomes of a run, with Core Foundation's raw values.
package enum RunOutcome: Int32, Hashable, Sendable {
  case finished = 1
  case stopped = 2
  case timedOut = 3
  case handledSource = 4
}

package enum Answer: Hashable, Sendable {
  case bool(Bool)
  /// A date in ticks, or nil for none.
  case tick(Int?)
  case modes(Set<ModeName>)
}

/// A run loop that runs programs.
package protocol Machine: Sendable {
  func run(_ program: Program) -> Log
}
