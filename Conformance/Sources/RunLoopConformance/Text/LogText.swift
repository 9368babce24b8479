// SPDX-License-Identifier: Apache-2.0

extension Log: CustomStringConvertible {
  /// The log on one line, in the letters of the rules; logs with the same text are equal.
  ///
  /// `E BT BS BW AW X` are the first observer's activities, `E.1` is the second's. `S0`, `T0`, `B0` are the first
  /// source, timer and block. `S0+m1` and `S0-m1` mean that a source was added to and removed from a mode. `=stopped`
  /// is a run's result. `@3` means that the time is tick 3 from here on, `1m0` that one run is active, in mode 0, and
  /// `0-` that none is. An event while the loop was waiting has a `~`.
  package var description: String {
    var words: [String] = []
    var tick = 0
    var place = State(tick: 0, depth: 0, mode: nil, isWaiting: false).place
    for entry in entries {
      if entry.state.tick != tick {
        tick = entry.state.tick
        words.append("@\(tick)")
      }
      if entry.state.place != place {
        place = entry.state.place
        words.append(place)
      }
      words.append("\(entry.event)" + (entry.state.isWaiting ? "~" : ""))
    }
    return words.joined(separator: " ")
  }
}

extension Log.State {
  /// The number of nested runs, and the mode of the innermost.
  fileprivate var place: String { "\(depth)\(mode?.description ?? "-")" }
}

extension Log.Event: CustomStringConvertible {
  package var description: String {
    switch self {
    case .observer(let index, let activity): Self.letters(of: activity) + (index == 0 ? "" : ".\(index)")
    case .source(let index): "S\(index)"
    case .timer(let index): "T\(index)"
    case .block(let index): "B\(index)"
    case .entered(let source, let mode): "S\(source)+\(mode)"
    case .left(let source, let mode): "S\(source)-\(mode)"
    case .ranWith(let outcome): "=\(outcome)"
    case .ranUntilStopped: "=returned"
    case .answer(let question, let answer): "\(question)=\(answer)"
    case .asleepForEver: "asleep-for-ever"
    case .hung: "hung"
    }
  }

  private static func letters(of activity: UInt) -> String {
    switch activity {
    case 1: "E"
    case 2: "BT"
    case 4: "BS"
    case 32: "BW"
    case 64: "AW"
    case 128: "X"
    default: "O\(activity)"
    }
  }
}

extension Question: CustomStringConvertible {
  package var description: String {
    switch self {
    case .contains(let item, let mode): "contains(\(item),\(mode))"
    case .isValid(let item): "valid(\(item))"
    case .isSignalled(let source): "signalled(S\(source))"
    case .date(let timer): "date(T\(timer))"
    case .nextDate(let mode): "next(\(mode))"
    case .modes: "modes"
    }
  }
}

extension Answer: CustomStringConvertible {
  package var description: String {
    switch self {
    case .bool(let bool): bool ? "yes" : "no"
    case .tick(let tick): tick.map(String.init) ?? "none"
    case .modes(let modes): modes.map(\.description).sorted().joined(separator: "+")
    }
  }
}

extension ModeName: CustomStringConvertible {
  package var description: String {
    switch self {
    case .mode(let number): "m\(number)"
    case .common: "common"
    }
  }
}

extension Item: CustomStringConvertible {
  package var description: String {
    switch self {
    case .source(let index): "S\(index)"
    case .observer(let index): "O\(index)"
    case .timer(let index): "T\(index)"
    }
  }
}

extension Comparison.Logs: CustomStringConvertible {
  package var description: String {
    """
    Core Foundation: \(coreFoundation)
    the model of it: \(modelOfCoreFoundation)
    ours:            \(ours)
    the model of it: \(modelOfOurs)
    """
  }
}
