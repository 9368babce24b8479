// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// The blocks of a loop as its thread sees them; used on the loop's thread only.
struct BlockState: ~Copyable {
  /// The number of the last block that was taken from the inbox.
  var lastSequence: UInt64 = 0
  /// Blocks before this one belong to a batch that is being run: a nested run does not see them.
  var visibleFrom: UInt64 = 0
  /// Blocks for the common modes.
  var common = BlockQueue()
  /// The arrivals that were taken from the inbox, on their way into the queues.
  var arrived = Arrivals()
  /// The batches that are being run, the outermost first.
  ///
  /// A thread that stops leaves the batches here, and their blocks count among the remaining ones; the same holds for a
  /// thread that ends within a block.
  var running = MoveQueue<Batch>()
  /// Empty queues for the batches of nested passes, so that a pass allocates none.
  var spares = MoveQueue<Batch>()
  /// Jobs of executors.
  ///
  /// They stay here until they run, so that a run nested in a block finds those that were posted with it.
  var jobs = BlockQueue()
  /// Whether a job is being run: nested runs run no jobs.
  var isRunningJob = false
  /// Work that was handed over for the common modes, and the place of the first of it in the order of all signals.
  var commonHandOffs = BlockQueue()
  var commonHandOffSignal: UInt64 = 0
  var hasCommonHandOffs = false

  /// The blocks that one step of a pass runs.
  final class Batch {
    @exclusivity(unchecked) var ofMode = BlockQueue()
    @exclusivity(unchecked) var common = BlockQueue()

    /// The number of the entry that was posted first, or the largest number if there is none.
    var firstSequence: UInt64 { min(ofMode.firstSequence, common.firstSequence) }

    var isEmpty: Bool { ofMode.isEmpty && common.isEmpty }

    /// Takes the entry that was posted first.
    @inline(__always)
    func takeNext() -> BlockQueue.Entry? {
      if common.isEmpty { return ofMode.isEmpty ? nil : ofMode.takeFirst() }
      return ofMode.firstSequence < common.firstSequence ? ofMode.takeFirst() : common.takeFirst()
    }

    func trim() {
      ofMode.trim()
      common.trim()
    }
  }
}

// Phases 4, 6 and 12 of the pass: blocks and jobs.
extension RunLoop {
  /// Runs the blocks and jobs that wait for the mode, or for the common modes if it is one, in the order in which they
  /// were posted.
  ///
  /// Blocks and jobs that are posted meanwhile wait for the next time.
  @inline(__always)
  func performBlocks(_ mode: ModeState) {
    takeArrivals()
    guard hasBlock(mode), !stopFlag.isEnding else { return }
    performBatch(mode)
  }

  /// Takes what was posted, for the questions that follow.
  ///
  /// - Parameter exactly: Looks into the inbox under its lock. Otherwise what another thread posts at this moment may
  ///   be missed.
  @inline(__always)
  func takeArrivals(exactly: Bool = false) { if exactly || inbox.mayHaveEntries { sortArrivals() } }

  /// Whether a block waits that the mode could run now, among the arrivals that were taken.
  @inline(__always)
  func hasBlock(_ mode: ModeState) -> Bool {
    if mode.blocks.hasBlock(from: blocks.visibleFrom) { return true }
    guard mode.isCommon.load(ordering: .relaxed) else { return false }
    return blocks.common.hasBlock(from: blocks.visibleFrom) || (!blocks.isRunningJob && !blocks.jobs.isEmpty)
  }

  @inline(never)
  private func performBatch(_ mode: ModeState) {
    let batch = blocks.spares.isEmpty ? BlockState.Batch() : blocks.spares.takeLast()
    mode.blocks.detach(from: blocks.visibleFrom, into: &batch.ofMode)
    var isCommon = mode.isCommon.load(ordering: .relaxed)
    if isCommon {
      blocks.common.detach(from: blocks.visibleFrom, into: &batch.common)
    }
    let visibleBefore = blocks.visibleFrom
    let last = blocks.lastSequence
    blocks.visibleFrom = last + 1
    blocks.running.append(batch)
    while !stopFlag.isEnding, let entry = takeNext(of: batch, jobsUpTo: isCommon ? last : 0) {
      let sequence = entry.sequence
      noteServed()
      // Consumed, as it would be kept until after the call otherwise, by a reference of its own.
      call((consume entry).work, mode, sequence)
      // A block may make its mode common: those behind it that have waited for that are of this batch.
      if !isCommon, mode.isCommon.load(ordering: .relaxed) {
        isCommon = true
        let next = max(visibleBefore, sequence + 1)
        blocks.common.detach(from: next, below: blocks.visibleFrom, into: &batch.common)
      }
      if isBudgetOver { break }
      // A batch may last for seconds: a tool that raises the level meanwhile sees the rest of it.
      takeUpLevel()
    }
    blocks.visibleFrom = visibleBefore
    guard !stopFlag.isEnding else { return }
    if !batch.isEmpty { giveBack(batch, to: mode) }
    batch.trim()
    blocks.spares.append(blocks.running.takeLast())
  }

  /// Puts what is left of a batch before what was sorted meanwhile.
  private func giveBack(_ batch: BlockState.Batch, to mode: ModeState) {
    mode.blocks.takeBack(&batch.ofMode)
    blocks.common.takeBack(&batch.common)
  }

  /// Takes the entry that was posted first: a block of the batch, or a job with a number up to `last`.
  @inline(__always)
  private func takeNext(of batch: BlockState.Batch, jobsUpTo last: UInt64) -> BlockQueue.Entry? {
    if blocks.jobs.isEmpty || blocks.isRunningJob { return batch.takeNext() }
    let job = blocks.jobs.firstSequence
    return job <= last && job < batch.firstSequence ? blocks.jobs.takeFirst() : batch.takeNext()
  }

  @inline(__always)
  private func call(_ work: consuming BlockQueue.Work, _ mode: ModeState, _ sequence: UInt64) {
    switch consume work {
    case .single(let block): call(block, mode, sequence)
    case .shared(let shared):
      guard let block = shared.take() else { return }
      for other in shared.modes where other !== mode { other.blocks.noteTaken() }
      if shared.isForCommonModes { blocks.common.noteTaken() }
      call(block, mode, sequence)
    case .job(let job): call(job, mode, sequence)
    }
  }

  @inline(__always)
  private func call(_ block: Block, _ mode: ModeState, _ sequence: UInt64) {
    calling(CRL_KIND_BLOCK, mode, CallNote(hook: .block, code: block.code, item: sequence)) {
      runLoopIsCallingOutToABlock(block)
    }
  }

  private func call(_ job: LoopJob, _ mode: ModeState, _ sequence: UInt64) {
    let wasRunningJob = blocks.isRunningJob
    blocks.isRunningJob = true
    calling(CRL_KIND_JOB, mode, CallNote(hook: .block, code: job.code, item: sequence)) {
      runLoopIsCallingOutToAnExecutorJob(job)
    }
    blocks.isRunningJob = wasRunningJob
  }

  /// Takes the arrivals and puts each block into the queue of its modes.
  @inline(never)
  private func sortArrivals() {
    inbox.drain(into: &blocks.arrived)
    guard blocks.arrived.lastSequence != blocks.lastSequence else { return }
    blocks.lastSequence = blocks.arrived.lastSequence
    if !blocks.arrived.addressed.isEmpty { sortAddressed() }
    if let mode = blocks.arrived.mode {
      if !blocks.arrived.inMode.isEmpty { mode.blocks.append(all: &blocks.arrived.inMode) }
      blocks.arrived.mode = nil
    }
    if !blocks.arrived.inDefaultMode.isEmpty { table.defaultMode.blocks.append(all: &blocks.arrived.inDefaultMode) }
    if !blocks.arrived.jobs.isEmpty { blocks.jobs.append(all: &blocks.arrived.jobs) }
    if !blocks.arrived.handOffs.isEmpty { sortHandOffs() }
  }

  /// Puts the blocks for other modes into their queues, in the default mode's queue behind the blocks that were posted
  /// before them.
  private func sortAddressed() {
    while !blocks.arrived.addressed.isEmpty {
      blocks.arrived.addressed.takeFirst().distribute(toCommon: { blocks.common.append($0) }, toMode: appendBlock)
    }
  }

  @inline(__always)
  private func appendBlock(_ entry: BlockQueue.Entry, to mode: ModeState) {
    if mode === table.defaultMode { mode.blocks.append(from: &blocks.arrived.inDefaultMode, before: entry.sequence) }
    if mode === blocks.arrived.mode { mode.blocks.append(from: &blocks.arrived.inMode, before: entry.sequence) }
    mode.blocks.append(entry)
  }
}
