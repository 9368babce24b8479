// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The modes of an application: the default mode and those that were pushed, the innermost last.
///
/// Each owner can have one mode on the stack, and can pop it without affecting those above it.
struct ModeStack {
  private var pushed: [(owner: ObjectIdentifier, mode: RunLoop.Mode)] = []

  init() {}

  var current: RunLoop.Mode { pushed.last?.mode ?? .default }

  /// Pushes an owner's mode, and returns whether the current mode has changed.
  mutating func push(_ mode: RunLoop.Mode, for owner: ObjectIdentifier) -> Bool {
    let before = current
    guard !pushed.contains(where: { $0.owner == owner }) else { return false }
    pushed.append((owner, mode))
    return current != before
  }

  /// Pops an owner's mode, and returns whether the current mode has changed.
  mutating func pop(_ owner: ObjectIdentifier) -> Bool {
    let before = current
    pushed.removeAll { $0.owner == owner }
    return current != before
  }
}
