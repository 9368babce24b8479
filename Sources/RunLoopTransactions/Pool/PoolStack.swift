// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// The pools of a thread, one within the other, on one stack of what they keep.
final class PoolStack: LoopAttachment, @unchecked Sendable {
  // Sendable: the variables are the loop's thread's alone, but for the atomic one.

  enum Entry {
    case object(AnyObject)
    case work(() -> Void)
  }

  /// A pool that is open.
  private struct Level {
    /// The place of the first entry that is the pool's.
    var start: Int
    /// The depth of the run that opened it; nil: somebody has opened it by hand.
    var runDepth: Int?
  }

  private let isObserving = Atomic<Bool>(false)
  @exclusivity(unchecked) private var entries: ContiguousArray<Entry> = []
  @exclusivity(unchecked) private var levels: ContiguousArray<Level> = []
  @exclusivity(unchecked) private var pushes = 0
  @exclusivity(unchecked) private var pops = 0

  var isOpen: Bool { !levels.isEmpty }

  var counts: (pushes: Int, pops: Int, open: Int) { (pushes, pops, levels.count) }

  /// Adds what is kept to the innermost pool.
  ///
  /// Without one it waits for the outermost that is opened next, or for the end of the loop.
  func append(_ entry: Entry) { entries.append(entry) }

  /// Opens a pool; returns how many were open before.
  @discardableResult
  func push(runDepth: Int? = nil) -> Int {
    pushes += 1
    // The outermost takes over what was left by those who had none.
    levels.append(Level(start: levels.isEmpty ? 0 : entries.count, runDepth: runDepth))
    return levels.count - 1
  }

  /// Closes pools until so many are open, and releases what is in them.
  ///
  /// - Parameter isCallOut: Whether the loop has called, and not a user's function.
  func pop(to count: Int, isCallOut: Bool = false) {
    while levels.count > count {
      drain(from: levels[levels.count - 1].start, isCallOut: isCallOut)
      levels.removeLast()
      pops += 1
    }
  }

  /// Releases what the innermost pool keeps, and what is added to it meanwhile, the last first.
  ///
  /// Each entry has left the stack before it goes: what its release runs may add to the pool, or run the loop, whose
  /// pools are opened and closed above.
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

// What the loop's observers do.
extension PoolStack {
  /// Adds the observers, once.
  ///
  /// Runs that are nested in what a pool releases call them too: they have pools of their own.
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

  /// Closes the pool of a run, if it has one: the observers may have been added within it.
  private func endTurn(runDepth: Int, opensNext: Bool) {
    if let level = levels.lastIndex(where: { $0.runDepth == runDepth }) { pop(to: level, isCallOut: true) }
    if opensNext { push(runDepth: runDepth) }
  }

  func loopDidEnd() {
    pop(to: 0)
    drain(from: 0, isCallOut: false)
  }
}
