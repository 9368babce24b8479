// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The group of a loop's asynchronous transactions, which calls their completions.
///
/// Each loop has one group. The group wakes the loop when the first of several transactions is ready, and calls the
/// completions of all ready transactions in one call-out of a source. It also provides a transaction of the current
/// turn, ``transaction``, which it commits when the loop is about to wait or a run ends, after a ``CommitPipeline``
/// and before the ``TurnPool``.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `_ASAsyncTransactionGroup`, with the same order,
/// ``TurnOrder/asyncCommit``.
public final class AsyncTransactionGroup: @unchecked Sendable {
  // Sendable: the lock guards the variables.

  /// The loop on whose thread the completions are called.
  public let loop: RunLoop
  private let lock = Lock()
  /// The items that have begun and have not been delivered.
  @exclusivity(unchecked) private var underWay: [ObjectIdentifier: (number: Int, item: any Deliverable)] = [:]
  @exclusivity(unchecked) private var lastNumber = 0
  /// The items that can be delivered now, in order.
  @exclusivity(unchecked) private var ready = TakeQueue<any Deliverable>()
  @exclusivity(unchecked) private var isSignalled = false
  @exclusivity(unchecked) private var hasEnded = false
  @exclusivity(unchecked) private var ofTurn: AsyncTransaction?
  /// The source that delivers the items, in the common modes while any item is under way.
  @exclusivity(unchecked) private var source: RunLoop.Source?

  private init(loop: RunLoop) { self.loop = loop }

  /// The group of the calling thread's loop, which is created on first use.
  public static var current: AsyncTransactionGroup { of(.current) }

  /// The group of the main loop.
  public static var main: AsyncTransactionGroup { of(.main) }

  /// Returns the group of a loop.
  ///
  /// Can be called from any thread. If the loop's thread has ended, the committing threads call completions
  /// immediately.
  public static func of(_ loop: RunLoop) -> AsyncTransactionGroup {
    guard
      let (group, isNew) = loop.attachment(AsyncTransactionGroup.self, orMake: { AsyncTransactionGroup(loop: loop) })
    else {
      let group = AsyncTransactionGroup(loop: loop)
      group.loopDidEnd()
      return group
    }
    if isNew { group.observe() }
    return group
  }

  /// The transaction of the current turn, which is created on first use and committed at the end of the turn.
  ///
  /// If it is committed or cancelled earlier, a new one is created. It uses the shared worker pool. Use it only on the
  /// loop's thread: other threads cannot know when the turn ends, and operations that they add too late are rejected.
  public var transaction: AsyncTransaction {
    while true {
      let known = lock.withLock { ofTurn }
      if let known, known.state == .open { return known }
      let made = AsyncTransaction(group: self)
      let isFirst = lock.withLock {
        guard ofTurn === known else { return false }
        if !hasEnded { ofTurn = made }
        return true
      }
      guard isFirst else { continue }
      loop.wakeUp()
      return made
    }
  }

  /// Commits the transaction of the current turn immediately, if there is one.
  ///
  /// Can be called from any thread.
  ///
  /// - Returns: Whether an open transaction was committed.
  @discardableResult
  public func commit() -> Bool { lock.withLock { ofTurn.take() }?.commitIfOpen() ?? false }

  private func observe() {
    let observer = RunLoop.Observer(activities: [.beforeWaiting, .exit], order: TurnOrder.asyncCommit) {
      [unowned self] _, _ in commit()
    }
    loop.add(observer, forMode: .common)
    let source = RunLoop.Source { [unowned self] in deliver() }
    lock.withLock {
      self.source = source
      // Another thread may have begun an item before the source existed.
      if !underWay.isEmpty { loop.add(source, forMode: .common) }
      if isSignalled { source.signal() }
    }
    loop.wakeUp()
  }
}

// These methods are called by transactions.
extension AsyncTransactionGroup {
  /// Registers an item that will be delivered, or returns false if the loop's thread has ended.
  func begin(_ item: any Deliverable) -> Bool {
    lock.withLock {
      guard !hasEnded else { return false }
      lastNumber += 1
      underWay[ObjectIdentifier(item)] = (lastNumber, item)
      // Under the lock, so that the source is in the loop exactly while an item is under way. This calls no user code.
      if underWay.count == 1, let source { loop.add(source, forMode: .common) }
      return true
    }
  }

  /// Queues an item that has begun for delivery.
  func isReady(_ item: any Deliverable) {
    lock.lock()
    // The end of the loop delivers all items that are under way.
    guard !hasEnded else { return lock.unlock() }
    ready.append(item)
    let isFirst = !isSignalled
    isSignalled = true
    let source = source
    lock.unlock()
    guard isFirst else { return }
    source?.signal()
    loop.wakeUp()
  }

  /// Unregisters an item that was delivered.
  func end(_ item: any Deliverable) {
    let ended = lock.withLock { () -> (any Deliverable)? in
      let ended = underWay.removeValue(forKey: ObjectIdentifier(item))
      if ended != nil, underWay.isEmpty, let source { loop.remove(source, forMode: .common) }
      return ended?.item
    }
    withExtendedLifetime(ended) {}
  }
}

// These methods are called on the loop's thread.
extension AsyncTransactionGroup: LoopAttachment {
  /// Delivers the items that are ready now, and leaves those that become ready meanwhile to the next pass.
  ///
  /// Each item is removed before it is delivered: a completion may run the loop, which delivers the others.
  private func deliver() {
    var count = lock.withLock {
      isSignalled = false
      return ready.count
    }
    while count > 0, let item = takeFirst() {
      count -= 1
      item.deliver(isCallOut: true)
    }
    let isFirst = lock.withLock {
      guard !ready.isEmpty, !isSignalled else { return false }
      isSignalled = true
      return true
    }
    if isFirst { lock.withLock { source }?.signal() }
  }

  private func takeFirst() -> (any Deliverable)? {
    lock.withLock { ready.takeFirst() }
  }

  package func loopDidEnd() {
    lock.lock()
    hasEnded = true
    let left = underWay.values.sorted { $0.number < $1.number }
    // Each item is also held by its transaction, or is released when this function returns, without the lock.
    let (source, ofTurn, undelivered) = (source, ofTurn, ready)
    self.source = nil
    self.ofTurn = nil
    underWay = [:]
    ready = TakeQueue()
    lock.unlock()
    source?.invalidate()
    for (_, item) in left { item.loopDidEnd() }
    ofTurn?.loopDidEnd()
    withExtendedLifetime(undelivered) {}
  }

  /// The number of transactions and rejected operations that are under way.
  package var countUnderWay: Int { lock.withLock { underWay.count } }
}
