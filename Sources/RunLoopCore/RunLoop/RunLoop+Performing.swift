// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// Runs a block once on the loop's thread, when the loop next runs in the default mode.
  ///
  /// Blocks of a mode run in the order in which they were posted. A sleeping loop is woken; if the loop is awake, a
  /// post makes no system call. If the loop's thread has ended, the loop releases the block and reports the rejection.
  /// Where a `Bool` is expected, the call returns whether the loop accepted the block. Can be called from any thread,
  /// but not from a signal handler because it takes a lock; use `SignalSource` from `RunLoopSystemEvents` there.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopPerformBlock`, the Foundation method `perform(_:)`.
  ///
  /// - Complexity: O(1) amortised.
  @inline(never)
  public func perform(_ block: consuming @escaping @Sendable () -> Void) {
    #if DEBUG
      // In unoptimised builds the accessor would not be inlined, so the site is determined here even if the loop does
      // not record.
      let site = crl_call_site()
    #else
      var site: UInt64 { @inline(__always) get { crl_return_address() } }
    #endif
    _ = enqueue(block, site: site)
  }

  /// Posts a block for the default mode, and returns `false` if the loop's thread has ended.
  @inline(__always)
  func enqueue(
    _ block: consuming @escaping @Sendable () -> Void, site: @autoclosure () -> UInt64
  ) -> Bool {
    table.checkFork()
    guard inbox.append(inDefaultMode: Block(body: block), site: site()) else { return reject(.endedLoop) }
    post(cause(.block) { $0 === table.defaultMode })
    return true
  }

  /// Runs a block once on the loop's thread, when the loop next runs in one of several modes.
  ///
  /// ``Mode/common`` in the list stands for every mode that is common when the block could run. A mode that does not
  /// exist is created. If the list is empty or the loop's thread has ended, the loop releases the block and reports
  /// the rejection. Where a `Bool` is expected, the call returns whether the loop accepted the block. Can be called
  /// from any thread, but not from a signal handler.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopPerformBlock`, the Foundation method
  /// `perform(inModes:block:)`.
  @inline(never)
  public func perform(inModes modes: [Mode], block: consuming @escaping @Sendable () -> Void) {
    _ = enqueue(block, in: modes, site: crl_call_site())
  }

  /// Posts a block for a list of modes, and returns `false` if the loop rejects it.
  @inline(__always)
  func enqueue(
    _ block: consuming @escaping @Sendable () -> Void, in modes: [Mode], site: UInt64
  ) -> Bool {
    guard !modes.isEmpty else { return reject(.noMode) }
    var rest: Block? = Block(body: block)
    if modes.count == 1, let block = rest.take() { rest = inbox.append(block, inModeAsBefore: modes[0], site: site) }
    if let block = rest {
      guard let addressed = address(block, modes), inbox.append(addressed, site: site) else {
        return reject(.endedLoop)
      }
    }
    if mainService != nil { for mode in modes { tellOfItem(mode) } }
    post(cause(.block, inModes: modes))
    return true
  }

  /// Returns a block addressed to the given modes, creating them if necessary, or `nil` if the loop's thread has ended.
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

  /// Queues an executor's job for the loop, and returns `false` if the loop's thread has ended (thread-safe).
  package func enqueue(_ job: LoopJob) -> Bool {
    table.checkFork()
    guard inbox.append(job) else { return false }
    post(cause(.block) { $0.isCommon.load(ordering: .relaxed) })
    return true
  }
}
