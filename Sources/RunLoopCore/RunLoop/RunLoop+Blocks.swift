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
  /// The batches that are being run, the outermost first.
  ///
  /// A thread that stops leaves them here, and what is in them remains with the rest; so does one that ends within a block.
  var running = MoveQueue<Batch>()
  /// Empty queues for the batches of nested passes, so that a pass allocates none.
  var spares = MoveQueue<Batch>()
  /// Jobs of executors.
  var jobs = BlockQueue()
  /// Whether a job is being run: nested runs see no jobs.
  var isRunningJob = false

  /// The batch that has the entry that was posted first, of those that are being run or were left.
  var firstRunning: Batch? {
    var first: Batch?
    for offset in 0..<running.count {
      let batch = running.withElement(at: offset) { $0 }
      if batch.firstSequence < first?.firstSequence ?? .max { first = batch }
    }
    return first
  }

  /// The blocks and jobs that one step of a pass runs.
  final class Batch {
    var own = BlockQueue()
    var common = BlockQueue()
    var jobs = BlockQueue()

    /// The number of the entry that was posted first, or the largest number if there is none.
    var firstSequence: UInt64 { min(own.firstSequence, common.firstSequence, jobs.firstSequence) }

    /// Takes the entry that was posted first.
    func takeNext() -> BlockQueue.Entry? {
      let (own, common, jobs) = (own.firstSequence, common.firstSequence, jobs.firstSequence)
      if own < common, own < jobs { return self.own.takeFirst() }
      if common < jobs { return self.common.takeFirst() }
      return jobs == .max ? nil : self.jobs.takeFirst()
    }

    func trim() {
      own.trim()
      common.trim()
      jobs.trim()
    }
  }
}

extension RunLoop {
  /// Runs the blocks that wait for the mode, or for the common modes if it is one, in the order in which they were posted.
  ///
  /// Blocks that are posted meanwhile wait for the next time.
  @inline(__always)
  func performBlocks(_ mode: ModeState) {
    guard hasBlock(mode), !stopFlag.isEnding else { return }
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
    guard mode.isCommon.load(ordering: .relaxed) else { return false }
    return blocks.common.hasBlock(from: blocks.visibleFrom)
      || (!blocks.isRunningJob && blocks.jobs.hasBlock(from: blocks.visibleFrom))
  }

  @inline(never)
  private func performBatch(_ mode: ModeState) {
    let batch = takeSpare()
    mode.blocks.detach(from: blocks.visibleFrom, into: &batch.own)
    var isCommon = mode.isCommon.load(ordering: .relaxed)
    if isCommon {
      blocks.common.detach(from: blocks.visibleFrom, into: &batch.common)
      if !blocks.isRunningJob { blocks.jobs.detach(from: blocks.visibleFrom, into: &batch.jobs) }
    }
    let visibleBefore = blocks.visibleFrom
    blocks.visibleFrom = blocks.lastSequence + 1
    blocks.running.append(batch)
    while !stopFlag.isEnding, let entry = batch.takeNext() {
      guard let work = entry.work.take() else { continue }
      call(work, mode)
      // A block may make its mode common: those behind it that have waited for that are of this batch.
      if !isCommon, mode.isCommon.load(ordering: .relaxed) {
        isCommon = true
        let next = max(visibleBefore, entry.sequence + 1)
        blocks.common.detach(from: next, below: blocks.visibleFrom, into: &batch.common)
      }
    }
    blocks.visibleFrom = visibleBefore
    guard !stopFlag.isEnding else { return }
    giveBack(blocks.running.takeLast())
  }

  private func call(_ work: BlockQueue.Work, _ mode: ModeState) {
    trace(.callOut(.block), mode)
    switch work {
    case .own(let block): runLoopIsCallingOutToABlock(block)
    case .shared: break
    case .job(let job):
      let wasRunningJob = blocks.isRunningJob
      blocks.isRunningJob = true
      runLoopIsCallingOutToAnExecutorJob(job)
      blocks.isRunningJob = wasRunningJob
    }
    trace(.callOutEnded(.block), mode)
  }

  private func takeSpare() -> BlockState.Batch {
    blocks.spares.isEmpty ? BlockState.Batch() : blocks.spares.takeLast()
  }

  private func giveBack(_ batch: BlockState.Batch) {
    batch.trim()
    blocks.spares.append(batch)
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
      case .job(let job):
        blocks.jobs.append(.init(sequence: sequence, work: .job(job)))
      }
    }
    blocks.arrived.trim(to: 1024)
  }
}
