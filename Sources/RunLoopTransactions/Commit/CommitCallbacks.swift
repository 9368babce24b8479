// SPDX-License-Identifier: Apache-2.0

/// The closures that wait for a commit, and those whose commit was made.
///
/// None is released here: whoever takes one out calls and releases it, outside the lock that guards this.
struct CommitCallbacks {
  /// In a structure of its own it is kept and passed on without a thunk.
  struct Body {
    let call: @Sendable (CommitReport) -> Void
  }

  /// For the coming commit, or the one that is under way.
  private var waiting: ContiguousArray<Body> = []
  /// For the one after it.
  private var later: ContiguousArray<Body> = []
  private var ready = TakeQueue<(Body, CommitReport)>()

  mutating func append(_ body: Body) { waiting.append(body) }

  mutating func appendLater(_ body: Body) { later.append(body) }

  /// A commit was made: what has waited for it is ready.
  mutating func finish(_ report: CommitReport) {
    for body in waiting { ready.append((body, report)) }
    waiting.removeAll(keepingCapacity: true)
    swap(&waiting, &later)
  }

  mutating func takeFirst() -> (Body, CommitReport)? { ready.takeFirst() }
}
