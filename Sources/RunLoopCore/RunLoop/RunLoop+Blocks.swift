// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// The loop's blocks as its own thread sees them (used only on the loop's thread).
struct BlockState: ~Copyable {
  /// The sequence number of the last entry taken from the inbox.
  var lastSequence: UInt64 = 0
  /// Blocks with lower numbers belong to a batch that is running, so a nested run does not see them.
  var visibleFrom: UInt64 = 0
  var common = BlockQueue()
  /// Arrivals that were taken from the inbox and have not yet been sorted into the queues.
  var arrived = Arrivals()
  /// The batches that are running, outermost first.
  ///
  /// A thread that stops or ends within a block leaves its batches here, and their blocks are among the remaining ones.
  var running = MoveQueue<Batch>()
  /// Spare queues for the batches of nested passes, so that a pass does not allocate.
  var spares = MoveQueue<Batch>()
  /// Executor jobs.
  ///
  /// A job stays here until it runs, so that a run nested in a block finds the jobs that were posted with that block.
  var jobs = BlockQueue()
  /// Whether a job is running, so that nested runs do not run jobs.
  var isRunningJob = false
  /// Hand-offs for the common modes, and the position of the first one in the order of all signals.
  var commonHandOffs = BlockQueue()
  var commonHandOffSignal: UInt64 = 0
  var hasCommonHandOffs = false

  /// The blocks to run in one step of a pass.
  final class Batch {
    @exclusivity(unchecked) var ofMode = BlockQueue()
    @exclusivity(unchecked) var common = BlockQueue()

    /// The sequence number of the earliest entry, or `UInt64.max` if there is none.
    var firstSequence: UInt64 { min(ofMode.firstSequence, common.firstSequence) }

    var isEmpty: Bool { ofMode.isEmpty && common.isEmpty }

    /// Removes and returns the entry that was posted first.
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
  /// Runs the blocks and jobs queued for the mode, and those for the common modes if it is one, in posting order.
  ///
  /// Blocks and jobs that are posted meanwhile wait until the next call.
  @inline(__always)
  func performBlocks(_ mode: ModeState) {
    takeArrivals()
    guard hasBlock(mode), !stopFlag.isEnding else { return }
    performBatch(mode)
  }

  /// Sorts new posts into the queues, so that the checks that follow see them.
  ///
  /// - Parameter exactly: Whether to take the inbox's lock. Without it, a concurrent post may be missed.
  @inline(__always)
  func takeArrivals(exactly: Bool = false) { if exactly || inbox.mayHaveEntries { sortArrivals() } }

  /// Whether a block that the mode could run now is among the arrivals taken so far.
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
      // Consumed because the entry would otherwise hold a second reference until after the call.
      call((consume entry).work, mode, sequence)
      // A block may make its mode common; the batch then includes the later blocks that were waiting for that.
      if !isCommon, mode.isCommon.load(ordering: .relaxed) {
        isCommon = true
        let next = max(visibleBefore, sequence + 1)
        blocks.common.detach(from: next, below: blocks.visibleFrom, into: &batch.common)
      }
      if isBudgetOver { break }
      // A batch may take seconds, so a recording level raised in the meantime applies to the rest of it.
      takeUpLevel()
    }
    blocks.visibleFrom = visibleBefore
    guard !stopFlag.isEnding else { return }
    if !batch.isEmpty { giveBack(batch, to: mode) }
    batch.trim()
    blocks.spares.append(blocks.running.takeLast())
  }

  /// Returns the rest of a batch to the front of the queues, before entries sorted meanwhile.
  private func giveBack(_ batch: BlockState.Batch, to mode: ModeState) {
    mode.blocks.takeBack(&batch.ofMode)
    blocks.common.takeBack(&batch.common)
  }

  /// Removes and returns the earliest entry: a block of the batch, or a job with a sequence number up to `last`.
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

  /// Takes the arrivals and adds each block to the queues of its modes.
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

  /// Adds blocks for other modes to their queues; in the default mode's queue, they follow the blocks posted earlier.
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
