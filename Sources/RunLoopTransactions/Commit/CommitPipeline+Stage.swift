// SPDX-License-Identifier: Apache-2.0

extension CommitPipeline {
  /// A part of every commit.
  public struct Stage: Sendable {
    /// What the stage does, for people who read about it.
    public let name: String
    /// Stages with a smaller order are performed first; among stages of equal order, the one that was added first.
    public let order: Int
    let perform: @Sendable () -> Void
    /// Whether records name the closure: the stages of a layer above name what they call.
    let isNamed: Bool

    /// Makes a stage.
    ///
    /// - Parameters:
    ///   - name: What the stage does, for people who read about it.
    ///   - order: When the stage is performed: a value of ``TurnOrder`` or a number between two of them. The loop calls
    ///     the stage among the observers of this order; a stage above ``TurnOrder/afterCommit`` is performed with the
    ///     observers of that order, behind them. Changes that stages of an order below ``TurnOrder/commit`` mark are
    ///     part of the same commit, and later marks are for the next.
    ///   - perform: Called on the loop's thread, once in each commit. It may run the loop; no commit is made meanwhile.
    public init(name: String, order: Int = TurnOrder.commit, perform: @escaping @Sendable () -> Void) {
      self.name = name
      self.order = order
      self.perform = perform
      isNamed = true
    }

    /// Makes a stage of a layer above, which calls the user's code.
    package init(unnamed name: String, order: Int, perform: @escaping @Sendable () -> Void) {
      self.name = name
      self.order = order
      self.perform = perform
      isNamed = false
    }
  }
}

/// The stages that one observer of a pipeline performs.
struct StageGroup {
  /// The observer's order.
  let order: Int
  private(set) var stages: ContiguousArray<CommitPipeline.Stage> = []

  init(order: Int) { self.order = order }

  mutating func insert(_ stage: CommitPipeline.Stage) {
    stages.insert(stage, at: stages.firstIndex { $0.order > stage.order } ?? stages.endIndex)
  }
}
