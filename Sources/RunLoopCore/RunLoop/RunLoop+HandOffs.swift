// SPDX-License-Identifier: Apache-2.0

import Synchronization

// Work handed to the loop's thread, in the manner of Apple's `perform(_:on:with:waitUntilDone:modes:)`: there is one
// queue, and each mode that has ever received such work has a version 0 source of order 0, which performs all the work
// queued for the mode.
//
// The source is not an object. A mode that accepts hand-offs counts it as an item that keeps the mode alive, and it is
// signalled while the queue contains work for the mode.
extension RunLoop {
  /// Hands work to the loop's thread, which performs it once, in the first of the given modes that it runs.
  ///
  /// Hand-offs are performed in order among themselves, but not relative to blocks and jobs. The first hand-off to a
  /// mode adds a source, so the mode is no longer empty. ``Mode/common`` stands for all current and future common
  /// modes. A sleeping loop is woken. Can be called from any thread.
  ///
  /// - Returns: `false` if the work was rejected and released: the list is empty, or the loop's thread has ended.
  package func handOff(
    inModes modes: [Mode], from origin: Origin = .unknown, block: @escaping @Sendable () -> Void
  ) -> Bool {
    guard leaveHandOff(inModes: modes, from: origin, block: block) else { return false }
    wakeForHandOffs(inModes: modes)
    return true
  }

  /// Hands work over without waking the loop.
  ///
  /// For callers that hold a lock which the woken thread may need. They call ``wakeForHandOffs(inModes:)`` afterwards.
  /// A loop that has ended is not reported here, because every API that hands work over throws an error for it.
  package func leaveHandOff(
    inModes modes: [Mode], from origin: Origin, block: @escaping @Sendable () -> Void
  ) -> Bool {
    guard !modes.isEmpty else { return reject(.noMode) }
    noteHandOffPlace()
    guard let handOff = address(Block(body: block), modes), inbox.append(handOff: handOff, site: origin.site) else {
      return reject(.endedLoop, isReported: false)
    }
    return true
  }

  /// Wakes the loop, if it sleeps, to perform the queued hand-offs.
  package func wakeForHandOffs(inModes modes: [Mode]) { post(cause(.source, inModes: modes)) }
}

// Phase 5 of the pass: the source of the hand-offs.
extension RunLoop {
  /// Whether a hand-off for the mode is among the arrivals taken so far.
  @inline(__always)
  func hasHandOff(_ mode: ModeState) -> Bool {
    (mode.hasTakenHandOffs && mode.handOffs.hasBlock(from: 0)) || (blocks.hasCommonHandOffs && hasCommonHandOff(mode))
  }

  private func hasCommonHandOff(_ mode: ModeState) -> Bool {
    mode.isCommon.load(ordering: .relaxed) && blocks.commonHandOffs.hasBlock(from: 0)
  }

  /// Whether the hand-off source is performed before another source, by order and then by first signal.
  func handOffs(signalledAt signal: UInt64, standBefore source: Source) -> Bool {
    source.order == 0 ? signal < source.signalOrder : source.order > 0
  }

  /// The position of the first pending hand-off in the order of all signals.
  func signalOfHandOffs(_ mode: ModeState) -> UInt64 {
    let signal = mode.handOffs.hasBlock(from: 0) ? mode.handOffSignal : .max
    return hasCommonHandOff(mode) ? min(signal, blocks.commonHandOffSignal) : signal
  }

  /// Performs the work handed over for the mode so far, in order, and returns whether there was any.
  ///
  /// Work handed over meanwhile signals the source again. A run nested in one of the calls performs the rest, and a
  /// later pass performs what a guest's budget leaves over.
  func performHandOffs(_ mode: ModeState) -> Bool {
    takeArrivals()
    guard hasHandOff(mode), !stopFlag.isEnding else { return false }
    mode.handOffSignal = 0
    if mode.isCommon.load(ordering: .relaxed) { blocks.commonHandOffSignal = 0 }
    trace(.callOut(.source0), mode)
    runLoopIsPerformingHandOffs(self, mode, upTo: blocks.lastSequence)
    trace(.callOutEnded(.source0), mode)
    return true
  }

  /// Removes and returns the first hand-off for the mode with a sequence number up to `end`.
  func takeHandOff(_ mode: ModeState, upTo end: UInt64) -> (block: Block, sequence: UInt64)? {
    while true {
      let own = mode.handOffs.firstSequence
      let common = mode.isCommon.load(ordering: .relaxed) ? blocks.commonHandOffs.firstSequence : .max
      guard min(own, common) <= end else { return nil }
      let entry = own < common ? mode.handOffs.takeFirst() : blocks.commonHandOffs.takeFirst()
      if case .single(let block)? = entry.work.take() {
        if case .shared(let shared) = entry.work {
          for other in shared.modes where other !== mode { other.handOffs.noteTaken() }
          if shared.isForCommonModes { blocks.commonHandOffs.noteTaken() }
        }
        noteServed()
        return (block, entry.sequence)
      }
    }
  }

  /// Sorts the arrived hand-offs into the queues of their modes.
  func sortHandOffs() {
    while !blocks.arrived.handOffs.isEmpty {
      blocks.arrived.handOffs.takeFirst().distribute(toCommon: appendCommon, toMode: append)
    }
  }

  private func append(_ entry: BlockQueue.Entry, to mode: ModeState) {
    if !mode.hasTakenHandOffs {
      mode.hasTakenHandOffs = true
      table.withLock { _ in mode.insertHandOffSource() }
    }
    if mode.handOffSignal == 0 || !mode.handOffs.hasBlock(from: 0) { mode.handOffSignal = blocks.arrived.handOffSignal }
    mode.handOffs.append(entry)
  }

  private func appendCommon(_ entry: BlockQueue.Entry) {
    if !blocks.hasCommonHandOffs {
      blocks.hasCommonHandOffs = true
      table.withLock { $0.insertCommonHandOffSource() }
    }
    if blocks.commonHandOffSignal == 0 || !blocks.commonHandOffs.hasBlock(from: 0) {
      blocks.commonHandOffSignal = blocks.arrived.handOffSignal
    }
    blocks.commonHandOffs.append(entry)
  }
}
