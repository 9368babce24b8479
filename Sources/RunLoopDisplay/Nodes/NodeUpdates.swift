// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// The nodes of the main loop that were changed: it applies the changes at the end of each turn, and hands drawings
/// over.
///
/// **Locks.** A node's, that of the tree and this one's are each taken alone.
final class NodeUpdates: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock, but for those that are the main thread's alone.

  let group: AsyncTransactionGroup
  /// Guards which nodes are within which.
  let treeLock = Lock()
  private let lock = Lock()
  @exclusivity(unchecked) private var pending: ContiguousArray<DisplayNode> = []
  @exclusivity(unchecked) private var isDraining = false
  @exclusivity(unchecked) private var hasEnded = false
  /// The commits of the application: they come also if the loop does not come to its wait.
  @exclusivity(unchecked) private var pipeline: CommitPipeline?
  /// Views whose nodes are gone.
  @exclusivity(unchecked) private var left: RunLoopQueue<NodeView>?

  // The main thread only.

  @exclusivity(unchecked) private var working: ContiguousArray<DisplayNode> = []
  @exclusivity(unchecked) private var handedOver: ContiguousArray<DrawingBatch.Item> = []
  @exclusivity(unchecked) private var transactions: ContiguousArray<AsyncTransaction> = []
  @exclusivity(unchecked) private var budget = DrawingBudget()
  /// In which run the loop last came to the updates, and how many waits there had been.
  @exclusivity(unchecked) private var arrival = (runDepth: -1, waits: -1)

  var loop: RunLoop { group.loop }

  private init(_ group: AsyncTransactionGroup) { self.group = group }

  /// Those of a group's loop.
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

// Any thread.
extension NodeUpdates {
  /// A node is to be updated at the end of the turn.
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

  /// Lets a view go on the main thread, with others.
  func release(_ view: NodeView) {
    let queue = lock.withLock { left }
    if queue?.enqueue(view) ?? false { return }
    // The loop has ended: if nobody serves the main actor any more, nothing is released there.
    Task { @MainActor in withExtendedLifetime(view) {} }
  }

  private var hasPending: Bool { lock.withLock { !pending.isEmpty } }

  /// Sees to it that the loop comes to its wait before it sleeps, where the updates are applied.
  private func comeToWait() {
    // In this pass it will come there by itself.
    if loop === RunLoop.currentIfMade, arrival.runDepth == loop.runDepth, arrival.waits != loop.waits, !loop.isWaiting {
      return
    }
    loop.wakeUp()
  }
}

// The main thread.
extension NodeUpdates {
  /// Applies all changes, also those that come meanwhile.
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
      // Of some it is the last reference.
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

  /// Lets a pipeline's commits apply the changes too, so that they are not later than the frames.
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
        // The layout has found some too. In a loop that does not come to its wait, nobody else hands them over.
        if let self, arrival.waits != loop.waits { commitDrawings() }
      })
  }

  /// A drawing is to be handed to a worker at the end of the turn.
  func handOver(_ node: DisplayNode, _ ticket: NodeState.Ticket, isVisible: Bool) {
    handedOver.append(.init(node: node, ticket: ticket, isVisible: isVisible, isAlone: node.drawsAlone))
  }

  /// A transaction is to be committed at the end of the turn.
  func commit(_ transaction: AsyncTransaction) { transactions.append(transaction) }

  /// Hands over what was drawn neither here nor before: a few one by one, and many in blocks, as to hand one over is
  /// dearer than to draw it if it is small.
  private func commitDrawings() {
    // One may have been cancelled since.
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

  /// Ends the process if the group is of the loop of another thread: it would apply changes to views there.
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
