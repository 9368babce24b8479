// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// An operation of an asynchronous transaction: workers run its pieces, and its completion is called once.
protocol AsyncOperation: AnyObject, Sendable {
  var priority: Int { get }
  /// How many pieces of work it makes.
  var pieceCount: Int { get }
  /// Runs a piece, which no other worker does.
  func run(_ piece: Int, _ cancellation: Cancellation)
  /// Notes that a piece has ended the thread of its worker.
  func abandon(_ piece: Int)
  /// Calls the completion, after the last piece was run or with the reason why there is no result.
  ///
  /// Called once.
  ///
  /// - Parameter isCallOut: Whether the loop has called, and not a user's function.
  func deliver(_ failure: AsyncTransactionError?, isCallOut: Bool)
}

/// One piece of work with one result.
final class SingleOperation<Value: Sendable>: AsyncOperation, @unchecked Sendable {
  // Sendable: the work and the result are the worker's until it has finished the piece under the transaction's lock,
  // and are read after that; the completion is for the one who delivers.

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
    // Released here, when it has run.
    guard let work = work.take(), !cancellation.isCancelled else { return }
    result = Result { try work(cancellation) }
  }

  func abandon(_ piece: Int) { result = .failure(AsyncTransactionError.workerHasEnded) }

  func deliver(_ failure: AsyncTransactionError?, isCallOut: Bool) {
    // As it is: a generic function would give it in a thunk.
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

/// Many small pieces of work with one completion, run by the block.
final class CountedOperation<Value: Sendable>: AsyncOperation, @unchecked Sendable {
  // Sendable: a block of results is its worker's until that has counted it, and the results are the last worker's,
  // until it has finished its piece under the transaction's lock; the completion is for the one who delivers.

  /// How many pieces of work a worker takes at once.
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
    // The last joins the blocks, so that the loop's thread need not.
    guard unfinished.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0, !cancellation.isCancelled
    else { return }
    results.reserveCapacity(count)
    for index in blocks.indices {
      results.append(contentsOf: blocks[index])
      blocks[index] = []
    }
  }

  /// The results are not all there, and that says it.
  func abandon(_ piece: Int) {}

  func deliver(_ failure: AsyncTransactionError?, isCallOut: Bool) {
    // As it is: a generic function would give it in a thunk.
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
