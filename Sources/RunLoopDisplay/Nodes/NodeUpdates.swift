// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// Applies the changes of all nodes of the main loop at the end of each turn, and hands over their drawings.
///
/// **Locks.** The locks of a node, of the tree and of this object are never held at the same time.
final class NodeUpdates: @unchecked Sendable {
  // Sendable: the lock guards the variables, except those that only the main thread uses.

  let group: AsyncTransactionGroup
  let treeLock = Lock()
  private let lock = Lock()
  @exclusivity(unchecked) private var pending: ContiguousArray<DisplayNode> = []
  @exclusivity(unchecked) private var isDraining = false
  @exclusivity(unchecked) private var hasEnded = false
  /// The pipeline of the application, which commits even if the loop does not reach its wait.
  @exclusivity(unchecked) private var pipeline: CommitPipeline?
  /// The views whose nodes have been released.
  @exclusivity(unchecked) private var left: RunLoopQueue<NodeView>?

  // Used only on the main thread.

  @exclusivity(unchecked) private var working: ContiguousArray<DisplayNode> = []
  @exclusivity(unchecked) private var handedOver: ContiguousArray<DrawingBatch.Item> = []
  @exclusivity(unchecked) private var transactions: ContiguousArray<AsyncTransaction> = []
  @exclusivity(unchecked) private var budget = DrawingBudget()
  /// The run depth at which the loop last reached the updates, and its number of waits at that time.
  @exclusivity(unchecked) private var arrival = (runDepth: -1, waits: -1)

  var loop: RunLoop { group.loop }

  private init(_ group: AsyncTransactionGroup) { self.group = group }

  /// Returns the updates of a group's loop.
  static func of(_ group: AsyncTransactionGroup) -> NodeUpdates {
    guard let (updates, isNew) = group.loop.attachment(NodeUpdates.self, orMake: { NodeUpdates(group) }) else {
      let updates = NodeUpdates(group)
      updates.loopDidEnd()
      return updates
    }
    if isNew { updates.observe() }
    return updates
  }

  private func observe() {
    let apply = MainActor.handler { [unowned self] in DisplayCallOut.make { self.drain() } }
    let update = RunLoop.Observer(activities: [.beforeWaiting, .exit], order: TurnOrder.updates) {
      [unowned self] _, activity in
      if activity == .beforeWaiting { arrival = (loop.runDepth, loop.waits) }
      if hasPending { apply() }
    }
    let commit = RunLoop.Observer(activities: [.beforeWaiting, .exit], order: TurnOrder.asyncCommit) {
      [unowned self] _, _ in commitDrawings()
    }
    loop.add(update, forMode: .common)
    loop.add(commit, forMode: .common)
    let queue = RunLoopQueue<NodeView>(loop: loop, batch: 16, budget: .milliseconds(1), unique: false) { _, _ in }
    lock.withLock { if !hasEnded { left = queue } }
    loop.wakeUp()
  }
}

// These methods can be called from any thread.
extension NodeUpdates {
  /// Queues a node to be updated at the end of the turn.
  func enqueue(_ node: DisplayNode) {
    lock.lock()
    guard !hasEnded else { return lock.unlock() }
    pending.append(node)
    let wakes = pending.count == 1 && !isDraining
    let pipeline = wakes ? pipeline : nil
    lock.unlock()
    guard wakes else { return }
    pipeline?.setNeedsCommit()
    comeToWait()
  }

  /// Releases a view on the main thread, in batches with others.
  func release(_ view: NodeView) {
    let queue = lock.withLock { left }
    if queue?.enqueue(view) ?? false { return }
    // The loop has ended. If the main actor is no longer served either, the view is never released.
    Task { @MainActor in withExtendedLifetime(view) {} }
  }

  private var hasPending: Bool { lock.withLock { !pending.isEmpty } }

  /// Makes sure that the loop reaches its wait, where updates are applied, before it sleeps.
  private func comeToWait() {
    // The loop will reach its wait in this pass anyway.
    if loop === RunLoop.currentIfMade, arrival.runDepth == loop.runDepth, arrival.waits != loop.waits, !loop.isWaiting {
      return
    }
    loop.wakeUp()
  }
}

// These methods are called on the main thread.
extension NodeUpdates {
  /// Applies all changes, including those made meanwhile.
  @MainActor
  func drain() {
    let begins = lock.withLock {
      guard !isDraining else { return false }
      isDraining = true
      return true
    }
    guard begins else { return }
    while takePending() {
      for node in working { node.update() }
      // These may be the last references to some nodes.
      working.removeAll(keepingCapacity: true)
    }
  }

  private func takePending() -> Bool {
    lock.withLock {
      isDraining = !pending.isEmpty
      swap(&pending, &working)
      return isDraining
    }
  }

  /// Makes a pipeline's commits apply the changes too, so that they are not delayed beyond the frame.
  @MainActor
  func join(_ pipeline: CommitPipeline) {
    let isNew = lock.withLock {
      guard self.pipeline !== pipeline, !hasEnded else { return false }
      self.pipeline = pipeline
      return true
    }
    guard isNew else { return }
    let apply = MainActor.handler { [weak self, weak pipeline] in
      DisplayCallOut.make(pipeline?.isCalledOut ?? false) { self?.drain() ?? () }
    }
    pipeline.add(
      .init(unnamed: "nodes", order: TurnOrder.updates) { [weak self] in
        if self?.hasPending ?? false { apply() }
      })
    pipeline.add(
      .init(unnamed: "drawings", order: TurnOrder.afterCommit) { [weak self] in
        // The layout has produced further drawings. If the loop never waits, nothing else hands them over.
        if let self, arrival.waits != loop.waits { commitDrawings() }
      })
  }

  /// Hands a drawing to a worker at the end of the turn.
  func handOver(_ node: DisplayNode, _ ticket: NodeState.Ticket, isVisible: Bool) {
    handedOver.append(.init(node: node, ticket: ticket, isVisible: isVisible, isAlone: node.drawsAlone))
  }

  /// Commits a transaction at the end of the turn.
  func commit(_ transaction: AsyncTransaction) { transactions.append(transaction) }

  /// Hands the remaining drawings to workers: a few one by one, and many in blocks, because handing over a small
  /// drawing costs more than making it.
  private func commitDrawings() {
    // Some may have been cancelled since.
    while let transaction = transactions.popLast() { _ = transaction.commitIfOpen() }
    guard !handedOver.isEmpty else { return }
    let items = handedOver.filter { $0.node.wants($0.ticket) }
    handedOver.removeAll(keepingCapacity: true)
    let limit = items.count > DrawingBatch.maximumCount ? DrawingBatch.maximumCount : 1
    var begin = 0
    while begin < items.count {
      var end = begin + 1
      while end < items.count, end - begin < limit, items[end].isLike(items[begin]) { end += 1 }
      DrawingBatch(ContiguousArray(items[begin..<end]), group).commit()
      begin = end
    }
  }

  /// Whether the main thread may draw in this turn.
  var hasTimeToDraw: Bool { budget.isOpen(turn: loop.waits, now: loop.clockNow.nanoseconds) }

  /// Terminates the process if the group belongs to another loop, whose thread would apply changes to views.
  @MainActor
  func checkLoop() {
    guard loop !== RunLoop.main, !lock.withLock({ hasEnded }) else { return }
    fatalError(
      "a node with the group of \(loop.threadDescription) cannot have a view: its group has to be that of the main loop"
    )
  }

  func measureDrawing(_ body: () -> Void) {
    let begin = loop.clockNow.nanoseconds
    body()
    budget.spend(loop.clockNow.nanoseconds - begin)
  }
}

extension NodeUpdates: LoopAttachment {
  func loopDidEnd() {
    lock.lock()
    hasEnded = true
    let ended = (pending, left, pipeline)
    pending = []
    left = nil
    pipeline = nil
    lock.unlock()
    handedOver = []
    transactions = []
    withExtendedLifetime(ended) {}
  }
}
