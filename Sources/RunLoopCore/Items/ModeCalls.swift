// SPDX-License-Identifier: Apache-2.0

/// Which call-outs a source still owes its user for one mode of a loop, so that they are balanced.
///
/// For each mode of each loop the calls are made one after the other, in turn: a `schedule` for each time that the
/// source has entered the mode, and a `cancel` for each time that it has left it. The thread that makes the source
/// enter or leave notes it here, and then makes the calls that are due; but if a call is running on any thread, that
/// thread makes them when the call has returned. If a source leaves before its `schedule` has begun, neither is called.
///
/// This is a value: ``Source`` guards it and makes the calls. A value with nothing due and nothing running is
/// equivalent to none.
struct ModeCalls: Equatable, Sendable {
  enum Call: Equatable, Sendable {
    case schedule
    case cancel
  }

  /// The call that has begun and has not returned.
  private(set) var running: Call?
  /// Whether `cancel` is due; before `schedule` if both are due, because the source has left and entered again.
  private(set) var owesCancel = false
  private(set) var owesSchedule = false

  /// Whether nothing is due and nothing is running.
  var isSettled: Bool { running == nil && !owesCancel && !owesSchedule }

  /// Notes that the source has entered the mode.
  mutating func enter() {
    precondition(!owesSchedule, "the source is in the mode")
    owesSchedule = true
  }

  /// Notes that the source has left the mode.
  mutating func leave() {
    if owesSchedule {
      // Nothing was called for the stay that ends here.
      owesSchedule = false
    } else {
      precondition(!owesCancel, "the source is not in the mode")
      owesCancel = true
    }
  }

  /// Begins the call that is due; returns nil if none is due, or if one is running.
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

  /// Notes that the running call has returned.
  mutating func end() {
    precondition(running != nil, "no call is running")
    running = nil
  }
}

/// The calls that a source owes, by mode; it contains only modes for which something is due or running.
struct ModeCallTable {
  private var entries: ContiguousArray<(mode: ObjectIdentifier, calls: ModeCalls)> = []

  var isEmpty: Bool { entries.isEmpty }

  /// Changes what is owed for a mode; the caller keeps the mode alive until nothing is owed for it.
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
