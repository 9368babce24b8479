// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// An operation of an asynchronous transaction, whose work runs on workers and whose completion is called once.
protocol AsyncOperation: AnyObject, Sendable {
  var priority: Int { get }
  /// The number of work items that the operation consists of.
  var pieceCount: Int { get }
  /// Runs a work item. Each one is run by a single worker.
  func run(_ piece: Int, _ cancellation: Cancellation)
  /// Records that a work item ended the thread of its worker.
  func abandon(_ piece: Int)
  /// Calls the completion after the last work item has run, or with the reason that there is no result.
  ///
  /// Called once.
  ///
  /// - Parameter isCallOut: Whether the loop is the caller, as opposed to user code.
  func deliver(_ failure: AsyncTransactionError?, isCallOut: Bool)
}

/// An operation with one work item and one result.
final class SingleOperation<Value: Sendable>: AsyncOperation, @unchecked Sendable {
  // Sendable: the worker owns the work and the result until it finishes the item under the transaction's lock, and
  // they are read only after that. The thread that delivers owns the completion.

  let priority: Int
  @exclusivity(unchecked) private var work: (@Sendable (Cancellation) throws -> Value)?
  @exclusivity(unchecked) private var result: Result<Value, any Error>?
  @exclusivity(unchecked) private var completion: (@Sendable (Result<Value, any Error>) -> Void)?

  private struct Completion {
    let call: @Sendable (Result<Value, any Error>) -> Void
  }

  init(
    priority: Int, _ work: @escaping @Sendable (Cancellation) throws -> Value,
    _ completion: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    self.priority = priority
    self.work = work
    self.completion = completion
  }

  var pieceCount: Int { 1 }

  func run(_ piece: Int, _ cancellation: Cancellation) {
    // The work is released at the end of this function.
    guard let work = work.take(), !cancellation.isCancelled else { return }
    result = Result { try work(cancellation) }
  }

  func abandon(_ piece: Int) { result = .failure(AsyncTransactionError.workerHasEnded) }

  func deliver(_ failure: AsyncTransactionError?, isCallOut: Bool) {
    // Not `take()`: returned from a generic function, the closure would be wrapped in a thunk.
    guard let completion else { return }
    self.completion = nil
    if isCallOut { noteCall(of: Completion(call: completion)) }
    if let failure {
      completion(.failure(failure))
    } else {
      completion(result ?? .failure(AsyncTransactionError.cancelled))
    }
  }
}

/// An operation of many small work items that are run in blocks and have one completion.
final class CountedOperation<Value: Sendable>: AsyncOperation, @unchecked Sendable {
  // Sendable: a worker owns its block of results until it decrements `unfinished`. The last worker owns the results
  // until it finishes its item under the transaction's lock. The thread that delivers owns the completion.

  /// The number of calls to the work per block.
  static var blockSize: Int { 64 }

  let priority: Int
  private let count: Int
  private let work: @Sendable (Int, Cancellation) -> Value
  private let blocks: UnsafeMutableBufferPointer<ContiguousArray<Value?>>
  private let unfinished: Atomic<Int>
  @exclusivity(unchecked) private var results: ContiguousArray<Value?> = []
  @exclusivity(unchecked) private var completion: (@Sendable (ContiguousArray<Value?>) -> Void)?

  private struct Completion {
    let call: @Sendable (ContiguousArray<Value?>) -> Void
  }

  init(
    count: Int, priority: Int, _ work: @escaping @Sendable (Int, Cancellation) -> Value,
    _ completion: @escaping @Sendable (ContiguousArray<Value?>) -> Void
  ) {
    self.count = max(0, count)
    self.priority = priority
    self.work = work
    self.completion = completion
    let blockCount = self.count / Self.blockSize + (self.count % Self.blockSize == 0 ? 0 : 1)
    blocks = .allocate(capacity: blockCount)
    blocks.initialize(repeating: [])
    unfinished = Atomic(blockCount)
  }

  deinit {
    blocks.deinitialize()
    blocks.deallocate()
  }

  var pieceCount: Int { blocks.count }

  func run(_ piece: Int, _ cancellation: Cancellation) {
    let begin = piece * Self.blockSize
    let end = min(count, begin + Self.blockSize)
    var block = ContiguousArray<Value?>()
    block.reserveCapacity(end - begin)
    for index in begin..<end where !cancellation.isCancelled { block.append(work(index, cancellation)) }
    blocks[piece] = block
    // The last worker joins the blocks, so that the loop's thread does not have to.
    guard unfinished.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0, !cancellation.isCancelled
    else { return }
    results.reserveCapacity(count)
    for index in blocks.indices {
      results.append(contentsOf: blocks[index])
      blocks[index] = []
    }
  }

  /// Records nothing: the failure shows in the missing results.
  func abandon(_ piece: Int) {}

  func deliver(_ failure: AsyncTransactionError?, isCallOut: Bool) {
    // Not `take()`: returned from a generic function, the closure would be wrapped in a thunk.
    guard let completion else { return }
    self.completion = nil
    if isCallOut { noteCall(of: Completion(call: completion)) }
    if failure != nil || results.count != count {
      completion(ContiguousArray(repeating: nil, count: count))
    } else {
      let results = results
      self.results = []
      completion(results)
    }
  }
}
