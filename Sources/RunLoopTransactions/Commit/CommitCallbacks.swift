// SPDX-License-Identifier: Apache-2.0

/// The closures that are waiting for a commit, and those whose commit is finished.
///
/// No closure is released here, because the lock that guards this value is held. The caller takes a closure out,
/// and calls and releases it without the lock.
struct CommitCallbacks {
  /// Wraps the closure, so that storing and passing it creates no reabstraction thunk.
  struct Body {
    let call: @Sendable (CommitReport) -> Void
  }

  /// The closures for the next commit, or for the one in progress.
  private var waiting: ContiguousArray<Body> = []
  /// The closures for the commit after that.
  private var later: ContiguousArray<Body> = []
  private var ready = TakeQueue<(Body, CommitReport)>()

  mutating func append(_ body: Body) { waiting.append(body) }

  mutating func appendLater(_ body: Body) { later.append(body) }

  /// Makes the closures that were waiting for a commit ready to be called.
  mutating func finish(_ report: CommitReport) {
    for body in waiting { ready.append((body, report)) }
    waiting.removeAll(keepingCapacity: true)
    swap(&waiting, &later)
  }

  mutating func takeFirst() -> (Body, CommitReport)? { ready.takeFirst() }
}
