// SPDX-License-Identifier: Apache-2.0

import Synchronization

// Work that is handed to the loop's thread, as Apple's `perform(_:on:with:waitUntilDone:modes:)` hands it over: there
// is one queue, and each mode that ever got such work has a source of version 0 and order 0, which performs all the
// work that waits for the mode.
//
// The source is not an object: a mode that takes hand-offs counts it among the items that keep it alive, and it is
// signalled while the queue has work for the mode.
extension RunLoop {
  /// Hands work to the loop's thread, which performs it once, in the first of several modes that it runs.
  ///
  /// Hand-offs keep their order among each other, but not relative to blocks and jobs. From the first hand-off on, each
  /// of the modes has a source, so that it is not empty. ``Mode/common`` stands for every common mode, present and
  /// future. A sleeping loop is woken. Can be called from any thread.
  ///
  /// - Returns: False if the work was rejected and released: the list is empty, or the loop's thread has ended.
  package func handOff(
    inModes modes: [Mode], from origin: Origin = .unknown, block: @escaping @Sendable () -> Void
  ) -> Bool {
    guard leaveHandOff(inModes: modes, from: origin, block: block) else { return false }
    wakeForHandOffs(inModes: modes)
    return true
  }

  /// Hands work over without waking the loop.
  ///
  /// For a caller that holds a lock, which a woken thread may need; it calls ``wakeForHandOffs(inModes:)`` afterwards.
  /// Every spelling that hands work over has an error for a loop that has ended, which is not reported otherwise.
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

  /// Wakes the loop, if it sleeps, for the work that was left.
  package func wakeForHandOffs(inModes modes: [Mode]) { post(cause(.source, inModes: modes)) }
}

// Phase 5 of the pass: the source of the hand-offs.
extension RunLoop {
  /// Whether handed-over work waits for a mode, among the arrivals that were taken.
  @inline(__always)
  func hasHandOff(_ mode: ModeState) -> Bool {
    (mode.hasTakenHandOffs && mode.handOffs.hasBlock(from: 0)) || (blocks.hasCommonHandOffs && hasCommonHandOff(mode))
  }

  private func hasCommonHandOff(_ mode: ModeState) -> Bool {
    mode.isCommon.load(ordering: .relaxed) && blocks.commonHandOffs.hasBlock(from: 0)
  }

  /// Whether the source of the hand-offs is performed before another source: by order, and then by the first signal.
  func handOffs(signalledAt signal: UInt64, standBefore source: Source) -> Bool {
    source.order == 0 ? signal < source.signalOrder : source.order > 0
  }

  /// The place of the first waiting hand-off in the order of all signals.
  func signalOfHandOffs(_ mode: ModeState) -> UInt64 {
    let signal = mode.handOffs.hasBlock(from: 0) ? mode.handOffSignal : .max
    return hasCommonHandOff(mode) ? min(signal, blocks.commonHandOffSignal) : signal
  }

  /// Performs the work that was handed over for the mode before now, in order; returns true if there was any.
  ///
  /// Work that is handed over meanwhile signals the source again. A run that is nested in one of the calls performs the
  /// rest.
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

  /// Takes the first item of work for a mode that was handed over no later than the entry with the number `end`.
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

  /// Puts the arrivals into the queues of their modes.
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
