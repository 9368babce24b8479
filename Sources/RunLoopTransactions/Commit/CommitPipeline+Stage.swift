// SPDX-License-Identifier: Apache-2.0

extension CommitPipeline {
  /// A step of every commit.
  public struct Stage: Sendable {
    /// A human-readable description of what the stage does.
    public let name: String
    /// The order in which the stage is performed.
    ///
    /// Stages of equal order are performed in the order in which they were added.
    public let order: Int
    let perform: @Sendable () -> Void
    /// Whether call-out records name this closure, as opposed to the closures that it calls.
    let isNamed: Bool

    /// Creates a stage.
    ///
    /// - Parameters:
    ///   - name: A human-readable description of what the stage does.
    ///   - order: A value of ``TurnOrder`` or a number between two of them. The stage is performed among the loop's
    ///     observers of this order, or, if it is larger than ``TurnOrder/afterCommit``, after the other stages of
    ///     that order. Changes marked by stages below ``TurnOrder/commit`` are part of the same commit; changes
    ///     marked later are part of the next.
    ///   - perform: A closure called on the loop's thread, once per commit. It may run the loop, but no other commit is
    ///     made.
    public init(name: String, order: Int = TurnOrder.commit, perform: @escaping @Sendable () -> Void) {
      self.name = name
      self.order = order
      self.perform = perform
      isNamed = true
    }

    /// Creates a stage for a higher layer, whose closure calls user code and records it.
    package init(unnamed name: String, order: Int, perform: @escaping @Sendable () -> Void) {
      self.name = name
      self.order = order
      self.perform = perform
      isNamed = false
    }
  }
}

/// The stages performed by one observer of a pipeline.
struct StageGroup {
  let order: Int
  private(set) var stages: ContiguousArray<CommitPipeline.Stage> = []

  init(order: Int) { self.order = order }

  mutating func insert(_ stage: CommitPipeline.Stage) {
    stages.insert(stage, at: stages.firstIndex { $0.order > stage.order } ?? stages.endIndex)
  }
}
