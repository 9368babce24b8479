// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phase 5 of the pass: the signalled sources.

extension RunLoop {
  /// Performs the mode's signalled sources in order, including the hand-off source, and returns whether any was
  /// performed.
  ///
  /// A run that returns after a source performs at most one; the others stay signalled. A waiting source is passed over
  /// at most once by each of the others, so a source that keeps signalling itself cannot starve those that follow it.
  @inline(__always)
  func performSources(_ mode: ModeState) -> Bool {
    takeArrivals()
    let hasHandOff = hasHandOff(mode)
    // Not `hasHandOff && …`: its closure would retain the loop during the calls, one of which may end the thread.
    guard mode.mayHaveSignalled.load(ordering: .relaxed) else { return hasHandOff ? performHandOffs(mode) : false }
    return performSignalledSources(mode, hasHandOff: hasHandOff)
  }

  private func performSignalledSources(_ mode: ModeState, hasHandOff: Bool) -> Bool {
    if hasHandOff { return performCollected(mode, hasHandOff: true) }
    // Usually only one source is signalled.
    guard let only = table.withLock({ _ in mode.signalled.only }), only.claimSignal() else {
      return performCollected(mode, hasHandOff: false)
    }
    perform(only, mode)
    return true
  }

  /// Performs the signalled sources in a separate function, so that the path for a single source stays short.
  @inline(never)
  private func performCollected(_ mode: ModeState, hasHandOff: Bool) -> Bool {
    let start = sources.count
    collectSignalled(mode)
    let handOffSignal = hasHandOff ? signalOfHandOffs(mode) : .max
    let oldest = innermost.returnsAfterSource ? oldestSignal(from: start, handOffSignal) : .max
    // The hand-off source's position among the collected sources.
    var handOffPlace = -1
    // The longest-waiting source is always eligible: its signal may have been numbered before its last turn was noted.
    if hasHandOff, mode.lastTurnOfHandOffs < oldest || handOffSignal == oldest {
      handOffPlace =
        (start..<sources.count).first { handOffs(signalledAt: handOffSignal, standBefore: sources[$0]) }
        ?? sources.count
    }
    var handled = false
    for index in start...sources.count {
      if index == handOffPlace {
        if innermost.returnsAfterSource { mode.lastTurnOfHandOffs = SignalOrder.current }
        if performHandOffs(mode) { handled = true }
      }
      guard index < sources.count, !(innermost.returnsAfterSource && handled) else { break }
      let source = sources[index]
      let isEligible = source.lastTurn.load(ordering: .relaxed) < oldest || source.signalOrder == oldest
      guard isEligible, source.claimSignal() else { continue }
      perform(source, mode)
      handled = true
      if innermost.returnsAfterSource { break }
      takeUpLevel()
    }
    // Removed one at a time: releasing the last reference to a source may run code that runs the loop.
    while sources.count > start { _ = sources.removeLast() }
    return handled
  }

  /// The earliest first signal among the collected sources and the hand-offs.
  private func oldestSignal(from start: Int, _ handOffSignal: UInt64) -> UInt64 {
    var oldest = handOffSignal
    for index in start..<sources.count { oldest = min(oldest, sources[index].signalOrder) }
    return oldest
  }

  @inline(__always)
  private func perform(_ source: Source, _ mode: ModeState) {
    if innermost.returnsAfterSource { source.lastTurn.store(SignalOrder.current, ordering: .relaxed) }
    calling(
      CRL_KIND_SOURCE0, mode,
      CallNote(
        hook: .source0, code: source.code, item: itemAddress(source), tag: Origin.tag(source.signalOrder))
    ) { source.perform() }
  }
}

extension RunLoop {
  /// Whether a source of the mode is signalled (requires the table's lock).
  func findSignalled(_ mode: ModeState) -> Bool {
    if mode.signalled.peekFirst(unless: { $0.unlist() }) { return true }
    mode.mayHaveSignalled.store(false, ordering: .relaxed)
    return false
  }

  func hasSignalledSource(_ mode: ModeState) -> Bool {
    mode.mayHaveSignalled.load(ordering: .relaxed) && table.withLock { _ in findSignalled(mode) }
  }

  /// Appends the mode's signalled sources to ``sources``, sorted by order and then by first signal.
  private func collectSignalled(_ mode: ModeState) {
    let start = sources.count
    table.withLock { _ in
      mode.signalled.forEach(unless: { $0.unlist() }) { sources.append($0) }
      if mode.signalled.isEmpty { mode.mayHaveSignalled.store(false, ordering: .relaxed) }
    }
    func stands(_ left: Source, before right: Source) -> Bool {
      left.order != right.order ? left.order < right.order : left.signalOrder < right.signalOrder
    }
    var isOrdered = true
    for index in start + 1..<max(start + 1, sources.count) where stands(sources[index], before: sources[index - 1]) {
      isOrdered = false
    }
    if !isOrdered { sources[start...].sort(by: stands) }
  }

  /// Notes that a source was signalled; requires the source's lock.
  func noteSignalled(_ membership: Membership<Source>) {
    table.withLock { _ in membership.mode.enqueue(membership) }
  }
}
