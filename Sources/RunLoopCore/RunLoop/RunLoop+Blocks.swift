import Synchronization

/// The blocks of a loop as its thread sees them.
///
/// The loop's thread only.
struct BlockState: ~Copyable {
  /// The number of the last block that was taken from the inbox.
  var lastSequence: UInt64 = 0
  /// Blocks before this one belong to a batch that is being run: a nested run does not see them.
  var visibleFrom: UInt64 = 0
  /// Blocks for the common modes.
  var common = BlockQueue()
  /// What the inbox gave, on its way into the queues.
  var arrived = MoveQueue<Inbox.Entry>()
  /// Empty queues for the batches of nested passes, so that a pass allocates none.
  var spares = MoveQueue<SpareQueue>()

  final class SpareQueue {
    var blocks = BlockQueue()
  }
}

extension RunLoop {
  /// Runs the blocks that wait for the mode, or for the common modes if it is one, in the order in which they were posted.
  ///
  /// Blocks that are posted meanwhile wait for the next time.
  @inline(__always)
  func performBlocks(_ mode: ModeState) {
    guard hasBlock(mode) else { return }
    performBatch(mode)
  }

  /// Whether a block waits that the mode could run now.
  ///
  /// - Parameter exactly: Looks into the inbox under its lock. Otherwise a block that another thread posts at this moment
  ///   may be missed.
  @inline(__always)
  func hasBlock(_ mode: ModeState, exactly: Bool = false) -> Bool {
    if exactly || inbox.mayHaveEntries { sortArrivals() }
    if mode.blocks.hasBlock(from: blocks.visibleFrom) { return true }
    return mode.isCommon.load(ordering: .relaxed) && blocks.common.hasBlock(from: blocks.visibleFrom)
  }

  @inline(never)
  private func performBatch(_ mode: ModeState) {
    let own = takeSpare()
    let common = takeSpare()
    mode.blocks.detach(from: blocks.visibleFrom, into: &own.blocks)
    if mode.isCommon.load(ordering: .relaxed) {
      blocks.common.detach(from: blocks.visibleFrom, into: &common.blocks)
    }
    let visibleBefore = blocks.visibleFrom
    blocks.visibleFrom = blocks.lastSequence + 1
    while true {
      let ownNext = own.blocks.firstSequence
      let commonNext = common.blocks.firstSequence
      guard ownNext != .max || commonNext != .max else { break }
      let entry = ownNext < commonNext ? own.blocks.takeFirst() : common.blocks.takeFirst()
      guard let block = entry.work.take() else { continue }
      trace(.callOut(.block), mode)
      runLoopIsCallingOutToABlock(block)
      trace(.callOutEnded(.block), mode)
    }
    blocks.visibleFrom = visibleBefore
    giveBack(own)
    giveBack(common)
  }

  private func takeSpare() -> BlockState.SpareQueue {
    blocks.spares.isEmpty ? BlockState.SpareQueue() : blocks.spares.takeLast()
  }

  private func giveBack(_ spare: BlockState.SpareQueue) {
    spare.blocks.trim()
    blocks.spares.append(spare)
  }

  /// Takes what has arrived and puts each block into the queue of its modes.
  @inline(never)
  func sortArrivals() {
    inbox.drain(into: &blocks.arrived)
    guard !blocks.arrived.isEmpty else { return }
    let defaultMode = table.withLock { $0.mode(.default) }
    while !blocks.arrived.isEmpty {
      blocks.lastSequence += 1
      let sequence = blocks.lastSequence
      switch blocks.arrived.takeFirst() {
      case .inDefaultMode(let block):
        defaultMode.blocks.append(.init(sequence: sequence, work: .own(block)))
      case .inCommonModes(let block):
        blocks.common.append(.init(sequence: sequence, work: .own(block)))
      case .inModes(let shared):
        if shared.isForCommonModes { blocks.common.append(.init(sequence: sequence, work: .shared(shared))) }
        for mode in shared.modes { mode.blocks.append(.init(sequence: sequence, work: .shared(shared))) }
      }
    }
    blocks.arrived.trim(to: 1024)
  }
}
