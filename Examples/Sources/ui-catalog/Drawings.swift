// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopTransactions

/// Many small drawings, made by workers in asynchronous transactions.
@MainActor
final class Drawings {
  private static let transactionCount = 100
  private static let drawingCount = 1000

  private let log: EventLog?
  private let show: (Drawings) -> Void
  /// The number of drawings reported, with a result or as cancelled.
  private(set) var completions = 0
  /// The number of those that were cancelled.
  private(set) var cancelled = 0
  private var lastNumber = 0
  /// The transactions to commit at the end of the turn.
  private var waiting: [(number: Int, transaction: AsyncTransaction, isCancelled: Bool)] = []

  /// - Parameter show: Called when drawings have completed.
  init(_ log: EventLog?, _ show: @escaping (Drawings) -> Void) {
    self.log = log
    self.show = show
    let observer = RunLoop.Observer(activities: [.beforeWaiting, .exit], order: TurnOrder.asyncCommit) {
      [weak self] _, _ in MainActor.assumeIsolated { self?.commit() }
    }
    RunLoop.main.add(observer, forMode: .common)
  }

  /// Creates the transactions, which are committed at the end of the turn.
  ///
  /// - Parameter isCancelled: Whether each is cancelled as soon as it is committed.
  func begin(isCancelled: Bool) {
    for _ in 0..<Self.transactionCount {
      lastNumber += 1
      let number = lastNumber
      let transaction = AsyncTransaction(group: .main)
      transaction.add(count: Self.drawingCount) { index, cancellation in
        var canvas = Canvas(size: Size(width: 12, height: 1))
        TextContent("drawing \(index)").draw(into: &canvas, cancellation)
        return canvas.grid
      } completion: { @MainActor results in
        self.take(results, of: number)
      }
      waiting.append((number, transaction, isCancelled))
    }
  }

  private func commit() {
    guard !waiting.isEmpty else { return }
    for (number, transaction, isCancelled) in waiting {
      log?.write("async commit \(number)")
      transaction.commit()
      if isCancelled { transaction.cancel() }
    }
    waiting.removeAll()
  }

  private func take(_ results: ContiguousArray<Grid?>, of number: Int) {
    let missing = results.reduce(0) { $0 + ($1 == nil ? 1 : 0) }
    completions += results.count
    cancelled += missing
    log?.write("transaction complete \(number) cancelled \(missing > 0)")
    show(self)
  }
}
