// SPDX-License-Identifier: Apache-2.0

/// The call-outs that a source still owes its user for one mode of a loop, which keeps them balanced.
///
/// For each mode of each loop, the calls alternate and never overlap: one `schedule` for each time that the source was
/// added to the mode, and one `cancel` for each time that it was removed. The thread that adds or removes the source
/// notes this here and then makes the calls that are due. If a call is running on another thread, that thread makes
/// them when the call returns. If a source is removed before its `schedule` has begun, neither is called.
///
/// This is a value type: ``Source`` guards it and makes the calls. A value with nothing due and nothing running is
/// equivalent to none.
struct ModeCalls: Equatable, Sendable {
  enum Call: Equatable, Sendable {
    case schedule
    case cancel
  }

  /// The call in progress, if any.
  private(set) var running: Call?
  /// Whether `cancel` is due; it precedes `schedule` if both are due because the source was removed and added again.
  private(set) var owesCancel = false
  private(set) var owesSchedule = false

  /// Whether no call is due or running.
  var isSettled: Bool { running == nil && !owesCancel && !owesSchedule }

  mutating func enter() {
    precondition(!owesSchedule, "the source is in the mode")
    owesSchedule = true
  }

  mutating func leave() {
    if owesSchedule {
      // Neither call was made for this membership.
      owesSchedule = false
    } else {
      precondition(!owesCancel, "the source is not in the mode")
      owesCancel = true
    }
  }

  /// Begins the next call that is due, or returns `nil` if none is due or one is running.
  mutating func begin() -> Call? {
    guard running == nil else { return nil }
    if owesCancel {
      owesCancel = false
      running = .cancel
    } else if owesSchedule {
      owesSchedule = false
      running = .schedule
    }
    return running
  }

  mutating func end() {
    precondition(running != nil, "no call is running")
    running = nil
  }
}

/// A source's calls by mode, for the modes for which a call is due or running.
struct ModeCallTable {
  private var entries: ContiguousArray<(mode: ObjectIdentifier, calls: ModeCalls)> = []

  var isEmpty: Bool { entries.isEmpty }

  /// Updates the calls owed for a mode, which the caller must keep alive until none is owed for it.
  mutating func change<Result>(_ mode: ModeState, _ body: (inout ModeCalls) -> Result) -> Result {
    let mode = ObjectIdentifier(mode)
    guard let index = entries.firstIndex(where: { $0.mode == mode }) else {
      var calls = ModeCalls()
      let result = body(&calls)
      if !calls.isSettled { entries.append((mode, calls)) }
      return result
    }
    let result = body(&entries[index].calls)
    if entries[index].calls.isSettled { entries.remove(at: index) }
    return result
  }
}
