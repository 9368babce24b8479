// SPDX-License-Identifier: Apache-2.0

/// Who has the focus of a window, as a value: each event is a function that changes it and says what is to be done.
struct FocusState: Hashable, Sendable {
  typealias Holder = ObjectIdentifier

  enum Action: Hashable, Sendable {
    /// It is as was asked for.
    case nothing
    /// The one who has it is to leave it first.
    case ask
    /// Who has asked has it from now on.
    case take
    /// Nobody has it from now on.
    case release
    /// It stays as it is.
    case reject
  }

  /// Who has it; nil: nobody.
  private(set) var holder: Holder?

  init(holder: Holder? = nil) { self.holder = holder }

  /// Somebody asks for it, who can have it or cannot.
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

  /// Somebody leaves it, if that is possible.
  mutating func resign(_ leaving: Holder, isAble: Bool) -> Action {
    guard holder == leaving else { return .nothing }
    guard isAble else { return .reject }
    holder = nil
    return .release
  }

  /// Somebody goes who is not asked.
  mutating func remove(_ leaving: Holder) -> Action { resign(leaving, isAble: true) }
}
