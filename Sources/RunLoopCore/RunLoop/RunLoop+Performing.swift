// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// Runs a block once on the loop's thread, when the loop next runs in the default mode.
  ///
  /// Blocks of a mode run in the order in which they were posted. A sleeping loop is woken; an awake one costs no
  /// system call. Can be called from any thread.
  ///
  /// - Returns: False if the loop rejects and releases the block, because the loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopPerformBlock`, the Foundation method `perform(_:)`.
  ///
  /// - Complexity: O(1) amortised.
  @discardableResult
  public func perform(_ block: @escaping @Sendable () -> Void) -> Bool {
    if sabotage.contains(.postsMakeTimers) {
      return add(Timer(tick: waiter.now, interval: 0, tolerance: 0) { _ in block() }, forMode: .default)
    }
    table.checkFork()
    guard inbox.append(inDefaultMode: Block(body: block)) else { return refuse(.endedLoop) }
    post()
    return true
  }

  /// Runs a block once on the loop's thread, when the loop next runs in one of several modes.
  ///
  /// ``Mode/common`` among them stands for every mode that is common when the block could run. A mode that does not
  /// exist is made. Can be called from any thread.
  ///
  /// - Returns: False if the loop rejects and releases the block: the list is empty, or the loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopPerformBlock`, the Foundation method
  /// `perform(inModes:block:)`.
  @discardableResult
  public func perform(inModes modes: [Mode], block: @escaping @Sendable () -> Void) -> Bool {
    table.checkFork()
    let block = Block(body: block)
    let isTaken: Bool
    switch modes {
    case []: return refuse(.noMode)
    case [.default]: isTaken = inbox.append(inDefaultMode: block)
    case [.common]: isTaken = inbox.append(inCommonModes: block)
    default:
      guard let shared = sharedBlock(block, modes) else { return refuse(.endedLoop) }
      isTaken = inbox.append(shared)
      for mode in modes { tellOfItem(mode) }
    }
    guard isTaken else { return refuse(.endedLoop) }
    post()
    return true
  }

  /// A block for a list of modes, which are made if they do not exist; nil if the loop's thread has ended.
  func sharedBlock(_ block: Block, _ modes: [Mode]) -> SharedBlock? {
    let concrete = Set(modes).subtracting([.common])
    let states = table.withLock { table in table.isDead ? nil : concrete.map { table.mode($0) } }
    return states.map { SharedBlock(block, modes: $0, isForCommonModes: modes.contains(.common)) }
  }

  /// Leaves an executor's job for the loop; false if the loop's thread has ended.
  ///
  /// Any thread.
  package func enqueue(_ job: LoopJob) -> Bool {
    table.checkFork()
    guard inbox.append(job) else { return false }
    post()
    return true
  }
}
