// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The activity of the loops on a virtual time, as text to compare with a literal.
///
/// | letters | meaning |
/// |---|---|
/// | `E`, `X` | a run begins, ends |
/// | `BT`, `BS` | before timers, before sources |
/// | `BW`, `AW` | before the wait, after it |
/// | `B` | a block, or a job of an actor or task |
/// | `S0` | a source that was signalled, or work that was handed over with `perform` of a thread |
/// | `S1` | a descriptor, a socket or a port |
/// | `T` | a timer |
/// | `M` | the main dispatch queue |
///
/// Entries of other threads' loops are prefixed with the thread's name: `worker:T`.
///
/// Tests add their own entries with ``write(_:)``. The log keeps the last 10,000 entries. All members can be called
/// from any thread.
public final class VirtualTimeLog: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  /// The number of entries that the log keeps.
  public static let capacity = 10_000

  private struct Entry {
    var text: String
    var time: Tick
    var isStage: Bool
  }

  private let lock = Lock()
  private var entries: [Entry] = []
  private var dropped = 0
  private let now: @Sendable () -> Tick

  init(now: @escaping @Sendable () -> Tick) { self.now = now }

  /// All entries in order, separated by spaces, such as `"E BT BS BW AW T X"`.
  ///
  /// If entries were dropped, the text begins with an ellipsis.
  public var text: String { joined { $0.text } }

  /// The call-outs and the test's own entries, without the stages, such as `"T T B"`.
  public var callOuts: String { joined { $0.isStage ? nil : $0.text } }

  /// The call-outs and the test's own entries with the milliseconds since the beginning, such as `"T@30000 B@30000"`.
  public var timedCallOuts: String {
    joined { entry in
      guard !entry.isStage else { return nil }
      let (whole, rest) = entry.time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
      return "\(entry.text)@\(whole)" + (rest == 0 ? "" : "+\(rest)ns")
    }
  }

  /// Returns the number of kept entries with a text.
  public func count(of text: String) -> Int { lock.withLock { entries.count { $0.text == text } } }

  /// Adds an entry of the test.
  public func write(_ text: String) { append(Entry(text: text, time: now(), isStage: false)) }

  /// Removes all entries.
  public func clear() {
    lock.withLock {
      entries = []
      dropped = 0
    }
  }

  func record(_ event: RunLoop.TraceEvent, prefix: String) {
    switch event.kind {
    case .activity(let activity):
      append(Entry(text: prefix + activity.letters, time: event.time, isStage: true))
    case .callOut(let kind): append(Entry(text: prefix + kind.letters, time: event.time, isStage: false))
    case .callOutEnded, .sleep: break
    }
  }

  private func append(_ entry: Entry) {
    lock.withLock {
      entries.append(entry)
      // Trimmed in large steps, so that the cost per entry is constant.
      guard entries.count >= 2 * Self.capacity else { return }
      dropped += entries.count - Self.capacity
      entries.removeFirst(entries.count - Self.capacity)
    }
  }

  private func joined(_ text: (Entry) -> String?) -> String {
    let (kept, isComplete) = lock.withLock {
      (Array(entries.suffix(Self.capacity)), dropped == 0 && entries.count <= Self.capacity)
    }
    return ((isComplete ? [] : ["…"]) + kept.compactMap(text)).joined(separator: " ")
  }
}

extension RunLoop.Activity {
  /// The abbreviation of an activity in logs.
  fileprivate var letters: String {
    switch self {
    case .entry: "E"
    case .beforeTimers: "BT"
    case .beforeSources: "BS"
    case .beforeWaiting: "BW"
    case .afterWaiting: "AW"
    case .exit: "X"
    default: "stage \(rawValue)"
    }
  }
}

extension RunLoop.CallOutKind {
  /// The abbreviation of a call-out in logs.
  fileprivate var letters: String {
    switch self {
    case .block: "B"
    case .source0: "S0"
    case .source1: "S1"
    case .timer: "T"
    case .mainQueue: "M"
    }
  }
}
