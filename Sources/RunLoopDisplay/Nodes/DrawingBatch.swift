// SPDX-License-Identifier: Apache-2.0

import RunLoopTransactions
import Synchronization

/// Drawings that are handed to workers together, in one transaction.
///
/// The transaction is cancelled when none of them is needed any longer.
final class DrawingBatch: Sendable {
  struct Item: Sendable {
    let node: DisplayNode
    let ticket: NodeState.Ticket
    let isVisible: Bool
    let isAlone: Bool

    /// Whether two drawings can be handed over together.
    func isLike(_ other: Item) -> Bool {
      isVisible == other.isVisible && !isAlone && !other.isAlone && node.workers === other.node.workers
    }
  }

  static let maximumCount = 64

  private let items: ContiguousArray<Item>
  private let transaction: AsyncTransaction
  // Relaxed: the last of the threads that count cancels the transaction, and reads nothing that the others wrote.
  private let unwanted = Atomic<Int>(0)

  init(_ items: ContiguousArray<Item>, _ group: AsyncTransactionGroup) {
    self.items = items
    transaction = AsyncTransaction(group: group, workers: items[0].node.workers)
  }

  /// Hands the drawings over, with a higher priority for visible ones.
  func commit() {
    let priority = items[0].isVisible ? 1 : 0
    if items.count == 1 {
      transaction.add(priority: priority) { [item = items[0]] cancellation in
        item.node.draw(item.ticket, cancellation)
      } completion: { result in
        MainActor.assumeIsolated { self.finish(result) }
      }
    } else {
      transaction.add(count: items.count, priority: priority) { [items] index, cancellation in
        items[index].node.draw(items[index].ticket, cancellation)
      } completion: { results in
        MainActor.assumeIsolated { self.finish(results) }
      }
    }
    for item in items where !item.node.assign(self, item.ticket) { abandon() }
    // If none of the drawings is needed, the transaction was cancelled.
    _ = transaction.commitIfOpen()
  }

  /// Records that a drawing is no longer needed.
  ///
  /// Can be called from any thread.
  func abandon() {
    if unwanted.wrappingAdd(1, ordering: .relaxed).newValue == items.count { transaction.cancel() }
  }

  @MainActor
  private func finish(_ result: Result<NodeDrawing?, any Error>) {
    let (node, ticket) = (items[0].node, items[0].ticket)
    switch result {
    case .success(let drawing?): node.finish(ticket, drawing)
    case .success(nil): break
    case .failure(let error): node.fail(ticket, error)
    }
  }

  /// If there are no results at all, the cause is unknown, so each drawing is tried again by itself.
  @MainActor
  private func finish(_ results: ContiguousArray<NodeDrawing??>) {
    let hasFailed = results.allSatisfy { $0 == nil }
    for (item, result) in zip(items, results) {
      switch result {
      case .some(let drawing?): item.node.finish(item.ticket, drawing)
      case .some(nil): break
      case nil: if hasFailed { item.node.retry(item.ticket) }
      }
    }
  }
}
