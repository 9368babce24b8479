// SPDX-License-Identifier: Apache-2.0

/// The state machine of a window's focus, whose methods return the action to perform.
struct FocusState: Hashable, Sendable {
  typealias Holder = ObjectIdentifier

  enum Action: Hashable, Sendable {
    /// The request is already satisfied.
    case nothing
    /// The current holder must resign first.
    case ask
    /// The requester receives the focus.
    case take
    /// The focus is released.
    case release
    /// The request is rejected.
    case reject
  }

  /// The responder that has the focus, or nil if none has.
  private(set) var holder: Holder?

  init(holder: Holder? = nil) { self.holder = holder }

  /// Handles a responder's request for the focus.
  mutating func request(_ asking: Holder, isAble: Bool) -> Action {
    guard isAble else { return .reject }
    switch holder {
    case asking: return .nothing
    case nil:
      holder = asking
      return .take
    default: return .ask
    }
  }

  /// Handles a responder's attempt to release the focus.
  mutating func resign(_ leaving: Holder, isAble: Bool) -> Action {
    guard holder == leaving else { return .nothing }
    guard isAble else { return .reject }
    holder = nil
    return .release
  }
}
