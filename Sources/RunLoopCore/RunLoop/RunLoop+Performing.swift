// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

extension RunLoop {
  /// Runs a block once on the loop's thread, when the loop next runs in the default mode.
  ///
  /// Blocks of a mode run in the order in which they were posted. A sleeping loop is woken; if the loop is awake, a
  /// post makes no system call. Can be called from any thread, but not in a signal handler, because it takes a lock:
  /// use a `SignalSource` of RunLoopPorts there.
  ///
  /// - Returns: False if the loop rejects and releases the block, because the loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopPerformBlock`, the Foundation method `perform(_:)`.
  ///
  /// - Complexity: O(1) amortised.
  @discardableResult
  @inline(never)
  public func perform(_ block: consuming @escaping @Sendable () -> Void) -> Bool {
    table.checkFork()
    #if DEBUG
      // Without optimisation nothing is inlined that could ask when it is known that the loop records.
      let site = crl_call_site()
    #else
      var site: UInt64 { @inline(__always) get { crl_return_address() } }
    #endif
    guard inbox.append(inDefaultMode: Block(body: block), site: site) else { return refuse(.endedLoop) }
    post()
    return true
  }

  /// Runs a block once on the loop's thread, when the loop next runs in one of several modes.
  ///
  /// ``Mode/common`` in the list stands for every mode that is common when the block could run. A mode that does not
  /// exist is made. Can be called from any thread, but not in a signal handler.
  ///
  /// - Returns: False if the loop rejects and releases the block: the list is empty, or the loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopPerformBlock`, the Foundation method
  /// `perform(inModes:block:)`.
  @discardableResult
  @inline(never)
  public func perform(inModes modes: [Mode], block: consuming @escaping @Sendable () -> Void) -> Bool {
    guard !modes.isEmpty else { return refuse(.noMode) }
    let site = crl_call_site()
    var rest: Block? = Block(body: block)
    if modes.count == 1, let block = rest.take() { rest = inbox.append(block, inModeAsBefore: modes[0], site: site) }
    if let block = rest {
      guard let addressed = address(block, modes), inbox.append(addressed, site: site) else {
        return refuse(.endedLoop)
      }
    }
    if mainService != nil { for mode in modes { tellOfItem(mode) } }
    post()
    return true
  }

  /// A block for a list of modes, which are made if they do not exist; nil if the loop's thread has ended.
  func address(_ block: Block, _ modes: [Mode]) -> AddressedBlock? {
    guard modes.count > 1 else {
      let name = modes[0]
      if name == .common {
        table.checkFork()
        return .inCommonModes(block)
      }
      let mode = table.locked { table.underLock.isDead ? nil : table.underLock.mode(name) }
      return mode.map { .inMode($0, block) }
    }
    let concrete = Set(modes).subtracting([.common])
    let states = table.withLock { table in table.isDead ? nil : concrete.map { table.mode($0) } }
    return states.map { .inModes(SharedBlock(block, modes: $0, isForCommonModes: modes.contains(.common))) }
  }

  /// Queues an executor's job for the loop; returns false if the loop's thread has ended.
  ///
  /// Can be called from any thread.
  package func enqueue(_ job: LoopJob) -> Bool {
    table.checkFork()
    guard inbox.append(job) else { return false }
    post()
    return true
  }
}
