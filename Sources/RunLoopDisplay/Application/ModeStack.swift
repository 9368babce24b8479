// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The modes that an application runs in, the innermost last: the default mode, and whatever was pushed.
///
/// Each owner has one mode at a time on the stack. An owner that ends in the middle leaves the others where they are.
struct ModeStack {
  private var pushed: [(owner: ObjectIdentifier, mode: RunLoop.Mode)] = []

  init() {}

  /// The mode to run in.
  var current: RunLoop.Mode { pushed.last?.mode ?? .default }

  /// Pushes an owner's mode; true if the mode to run in is another now.
  mutating func push(_ mode: RunLoop.Mode, for owner: ObjectIdentifier) -> Bool {
    let before = current
    guard !pushed.contains(where: { $0.owner == owner }) else { return false }
    pushed.append((owner, mode))
    return current != before
  }

  /// Takes an owner's mode away; true if the mode to run in is another now.
  mutating func pop(_ owner: ObjectIdentifier) -> Bool {
    let before = current
    pushed.removeAll { $0.owner == owner }
    return current != before
  }
}
