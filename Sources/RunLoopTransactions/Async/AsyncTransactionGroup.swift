// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The asynchronous transactions of a loop: it calls their completions.
///
/// A loop has one group. It wakes the loop when the first of several transactions is ready, and calls the completions
/// of all that are ready in one call-out of a source. The group also has a transaction of the turn, ``transaction``,
/// which it commits when the loop is about to wait or a run ends, after a ``CommitPipeline`` and before the
/// ``TurnPool``.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `_ASAsyncTransactionGroup`, with the same order,
/// ``TurnOrder/asyncCommit``.
public final class AsyncTransactionGroup: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  /// The loop on whose thread the completions are called.
  public let loop: RunLoop
  private let lock = Lock()
  /// What is to be delivered, now or later.
  @exclusivity(unchecked) private var underWay: [ObjectIdentifier: (number: Int, item: any Deliverable)] = [:]
  @exclusivity(unchecked) private var lastNumber = 0
  /// What is to be delivered now, in order.
  @exclusivity(unchecked) private var ready = TakeQueue<any Deliverable>()
  @exclusivity(unchecked) private var isSignalled = false
  @exclusivity(unchecked) private var hasEnded = false
  @exclusivity(unchecked) private var ofTurn: AsyncTransaction?
  /// Delivers; it is in the common modes while something is under way.
  @exclusivity(unchecked) private var source: RunLoop.Source?

  private init(loop: RunLoop) { self.loop = loop }

  /// The group of the calling thread's loop, which is made if there was none.
  public static var current: AsyncTransactionGroup { of(.current) }

  /// The group of the main loop.
  public static var main: AsyncTransactionGroup { of(.main) }

  /// The group of a loop.
  ///
  /// Can be called from any thread. If the loop's thread has ended, completions are called at once by the threads that
  /// commit.
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

  /// The transaction of this turn, which is made when it is first asked for, and committed at the end of the turn.
  ///
  /// If it was committed or cancelled before that, a new one is made. It uses the shared workers. It is meant for the
  /// loop's thread; another thread cannot know when the turn ends, and operations that it adds later are rejected.
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

  /// Commits the transaction of this turn now, if there is one.
  ///
  /// Can be called from any thread.
  ///
  /// - Returns: Whether there was one that was open.
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
      // Another thread may have been here first.
      if !underWay.isEmpty { loop.add(source, forMode: .common) }
      if isSignalled { source.signal() }
    }
    loop.wakeUp()
  }
}

// What a transaction notifies it of.
extension AsyncTransactionGroup {
  /// Something will have to be delivered; false if the loop's thread has ended.
  func begin(_ item: any Deliverable) -> Bool {
    lock.withLock {
      guard !hasEnded else { return false }
      lastNumber += 1
      underWay[ObjectIdentifier(item)] = (lastNumber, item)
      // Under the lock, so that it is in the loop exactly while something is under way. No call-out comes of it.
      if underWay.count == 1, let source { loop.add(source, forMode: .common) }
      return true
    }
  }

  /// Something that has begun can be delivered.
  func isReady(_ item: any Deliverable) {
    lock.lock()
    // The loop's end delivers whatever is under way.
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

  /// Something was delivered.
  func end(_ item: any Deliverable) {
    let ended = lock.withLock { () -> (any Deliverable)? in
      let ended = underWay.removeValue(forKey: ObjectIdentifier(item))
      if ended != nil, underWay.isEmpty, let source { loop.remove(source, forMode: .common) }
      return ended?.item
    }
    withExtendedLifetime(ended) {}
  }
}

// The loop's thread.
extension AsyncTransactionGroup: LoopAttachment {
  /// Delivers what is ready now; what becomes ready meanwhile has its turn in the next pass.
  ///
  /// Each leaves the list before it is delivered: a completion may run the loop, which delivers the others.
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
    // Each is held by its transaction as well, or ends with this function, outside the lock.
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

  /// How many transactions, and operations that came too late, are under way.
  package var countUnderWay: Int { lock.withLock { underWay.count } }
}
