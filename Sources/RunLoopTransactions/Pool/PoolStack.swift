// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// The nested pools of a thread, which share one stack of entries.
final class PoolStack: LoopAttachment, @unchecked Sendable {
  // Sendable: the variables are used only on the loop's thread, except for the atomic one.

  enum Entry {
    case object(AnyObject)
    case work(() -> Void)
  }

  /// An open pool.
  private struct Level {
    /// The index of the pool's first entry.
    var start: Int
    /// The depth of the run that opened the pool, or nil if `TurnPool.withPool(_:)` opened it.
    var runDepth: Int?
  }

  private let isObserving = Atomic<Bool>(false)
  @exclusivity(unchecked) private var entries: ContiguousArray<Entry> = []
  @exclusivity(unchecked) private var levels: ContiguousArray<Level> = []
  @exclusivity(unchecked) private var pushes = 0
  @exclusivity(unchecked) private var pops = 0

  var isOpen: Bool { !levels.isEmpty }

  var counts: (pushes: Int, pops: Int, open: Int) { (pushes, pops, levels.count) }

  /// Adds an entry to the innermost pool.
  ///
  /// If no pool is open, the entry is kept for the next outermost pool, or until the loop ends.
  func append(_ entry: Entry) { entries.append(entry) }

  /// Opens a pool, and returns the number of pools that were open before.
  @discardableResult
  func push(runDepth: Int? = nil) -> Int {
    pushes += 1
    // The outermost pool takes over the entries that were added while no pool was open.
    levels.append(Level(start: levels.isEmpty ? 0 : entries.count, runDepth: runDepth))
    return levels.count - 1
  }

  /// Closes pools until `count` of them are open, and releases their entries.
  ///
  /// - Parameter isCallOut: Whether the loop is the caller, as opposed to user code.
  func pop(to count: Int, isCallOut: Bool = false) {
    while levels.count > count {
      drain(from: levels[levels.count - 1].start, isCallOut: isCallOut)
      levels.removeLast()
      pops += 1
    }
  }

  /// Releases the entries of the innermost pool in reverse order, including those that are added meanwhile.
  ///
  /// Each entry is removed before it is released: its release may add to the pool, or run the loop, whose pools are
  /// opened and closed on top of this one.
  private func drain(from start: Int, isCallOut: Bool) {
    while entries.count > start {
      switch entries.removeLast() {
      case .object: break
      case .work(let work):
        if isCallOut { noteCall(of: CalledBody(work)) }
        work()
      }
    }
  }
}

// The observers of the loop.
extension PoolStack {
  /// Adds the observers, if that has not been done yet.
  ///
  /// They are reentrant: runs nested in the release of an entry have their own pools.
  func observe(_ loop: RunLoop) {
    guard !isObserving.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let entry = RunLoop.Observer(
      activities: .entry, repeats: true, order: TurnOrder.poolPush, isReentrant: true
    ) { [unowned self, unowned loop] _, _ in push(runDepth: loop.runDepth) }
    let end = RunLoop.Observer(
      activities: [.beforeWaiting, .exit], repeats: true, order: TurnOrder.poolPop, isReentrant: true
    ) { [unowned self, unowned loop] _, activity in
      endTurn(runDepth: loop.runDepth, opensNext: activity == .beforeWaiting)
    }
    loop.add(entry, forMode: .common)
    loop.add(end, forMode: .common)
    if loop === RunLoop.currentIfMade, loop.runDepth > 0, loop.isInCommonMode { push(runDepth: loop.runDepth) }
  }

  /// Closes the pool of a run, which may have none if the observers were added during the run.
  private func endTurn(runDepth: Int, opensNext: Bool) {
    if let level = levels.lastIndex(where: { $0.runDepth == runDepth }) { pop(to: level, isCallOut: true) }
    if opensNext { push(runDepth: runDepth) }
  }

  func loopDidEnd() {
    pop(to: 0)
    drain(from: 0, isCallOut: false)
  }
}
