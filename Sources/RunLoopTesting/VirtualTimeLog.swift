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
/// Entries of the loop of a further thread begin with the thread's name: `worker:T`. A test writes entries of its own
/// with ``write(_:)``. The log keeps the last 10 000 entries. Every member can be called from any thread.
public final class VirtualTimeLog: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  /// How many entries are kept.
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

  /// All entries in order, with one space between: `"E BT BS BW AW T X"`.
  ///
  /// If entries were dropped, the text begins with an ellipsis.
  public var text: String { joined { $0.text } }

  /// The call-outs and the test's own entries, without the stages: `"T T B"`.
  public var callOuts: String { joined { $0.isStage ? nil : $0.text } }

  /// The call-outs and the test's own entries with the milliseconds since the beginning: `"T@30000 B@30000"`.
  public var timedCallOuts: String {
    joined { entry in
      guard !entry.isStage else { return nil }
      let (whole, rest) = entry.time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
      return "\(entry.text)@\(whole)" + (rest == 0 ? "" : "+\(rest)ns")
    }
  }

  /// How many of the kept entries have this text.
  public func count(of text: String) -> Int { lock.withLock { entries.count { $0.text == text } } }

  /// Adds an entry of the test's own.
  public func write(_ text: String) { append(Entry(text: text, time: now(), isStage: false)) }

  /// Forgets every entry.
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
      // In large steps, so that each entry costs the same.
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
  /// The name of a stage in logs.
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
  /// The name of a call-out in logs.
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
