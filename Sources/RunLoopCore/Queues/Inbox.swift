// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// A queue in which any thread leaves blocks for a loop (multiple producers, single consumer).
///
/// Posting appends under a lock that is held for a few instructions. The loop swaps all arrivals for empty buffers.
final class Inbox: @unchecked Sendable {
  // Sendable: the lock guards the variables.
  private let lock = Lock()
  @exclusivity(unchecked) private var arrivals = Arrivals()
  @exclusivity(unchecked) private var isClosed = false
  /// A hint for the loop's thread, which may be stale.
  ///
  /// The loop never sleeps because of it; see ``drain(into:)``. Relaxed ordering suffices because the entries are
  /// taken with the lock held, under which the hint is exact.
  private let hasEntries = Atomic<Bool>(false)
  /// The recorder in which posts are noted, with the lock held.
  private let recorder: UnsafeMutablePointer<crl_recorder>
  private let face: UnsafeMutablePointer<crl_face>

  init(_ recorder: UnsafeMutablePointer<crl_recorder> = RunLoop.takeRecorder()) {
    self.recorder = recorder
    face = recorder.face
  }

  /// Whether there may be entries.
  ///
  /// Posts that happened before this read are always seen.
  var mayHaveEntries: Bool {
    @inline(__always) get { hasEntries.load(ordering: .relaxed) }
  }

  /// Appends a block for the default mode, and returns `false` if the inbox is closed.
  @inline(__always)
  func append(inDefaultMode block: consuming Block, site: @autoclosure () -> UInt64 = 0) -> Bool {
    guard open() else { return false }
    let sequence = arrivals.nextSequence()
    // Written out in full, because the compiler would otherwise retain the block with the lock held.
    arrivals.inDefaultMode.append(.init(sequence: sequence, work: .single(consume block)))
    note(sequence, site: site())
    return close()
  }

  /// Appends a block for the mode of the last such block, or returns it if its mode is another or the inbox is closed.
  ///
  /// This costs as much as a block for the default mode.
  @inline(__always)
  func append(_ block: consuming Block, inModeAsBefore name: RunLoop.Mode, site: UInt64) -> Block? {
    guard open() else { return block }
    guard let last = arrivals.modeName, last == name else {
      lock.unlock()
      return block
    }
    let sequence = arrivals.nextSequence()
    arrivals.inMode.append(.init(sequence: sequence, work: .single(consume block)))
    note(sequence, site: site)
    _ = close()
    return nil
  }

  /// Appends a block for other modes, and returns `false` if the inbox is closed.
  func append(_ block: consuming AddressedBlock, site: UInt64 = 0) -> Bool {
    guard open() else { return false }
    let sequence = arrivals.nextSequence()
    if case .inMode(let mode, let block) = block, arrivals.inMode.isEmpty, mode.name != .default {
      (arrivals.mode, arrivals.modeName) = (mode, mode.name)
      arrivals.inMode.append(.init(sequence: sequence, work: .single(block)))
    } else {
      arrivals.addressed.append(.init(sequence: sequence, block: block))
    }
    note(sequence, site: site)
    return close()
  }

  /// Appends an executor's job, and returns `false` if the inbox is closed.
  @inline(__always)
  func append(_ job: LoopJob) -> Bool {
    guard open() else { return false }
    let sequence = arrivals.nextSequence()
    arrivals.jobs.append(.init(sequence: sequence, work: .job(job)))
    if isRecorded(sequence) { crl_post_record_job(recorder, sequence, job.address) }
    return close()
  }

  /// Appends a hand-off, and returns `false` if the inbox is closed.
  func append(handOff: consuming AddressedBlock, site: UInt64 = 0) -> Bool {
    guard open() else { return false }
    let sequence = arrivals.nextSequence()
    if arrivals.handOffs.isEmpty { arrivals.handOffSignal = SignalOrder.next() }
    arrivals.handOffs.append(.init(sequence: sequence, block: handOff))
    note(sequence, site: site)
    return close()
  }

  /// Notes the last entry in the face and, if the loop records, in its posts; requires the lock.
  @inline(__always)
  private func note(_ sequence: UInt64, site: @autoclosure () -> UInt64) {
    if isRecorded(sequence) { crl_post_record(recorder, sequence, site()) }
  }

  /// Notes an entry in the face, and returns whether the loop records.
  @inline(__always)
  private func isRecorded(_ sequence: UInt64) -> Bool {
    Instruments.areBuilt && _slowPath(crl_face_note_post(face, sequence) != 0)
  }

  @inline(__always)
  private func open() -> Bool {
    lock.lock()
    guard isClosed else { return true }
    lock.unlock()
    return false
  }

  @inline(__always)
  private func close() -> Bool {
    if !hasEntries.load(ordering: .relaxed) { hasEntries.store(true, ordering: .relaxed) }
    lock.unlock()
    return true
  }

  /// Swaps all entries into `drained`, which must be empty; must be called on the loop's thread.
  func drain(into drained: inout Arrivals) {
    precondition(drained.isEmpty, "the last drain has been sorted")
    lock.lock()
    // The hint is exact with the lock held.
    if hasEntries.load(ordering: .relaxed) {
      drained.lastSequence = arrivals.lastSequence
      if !arrivals.inDefaultMode.isEmpty { swap(&arrivals.inDefaultMode, &drained.inDefaultMode) }
      if !arrivals.inMode.isEmpty {
        swap(&arrivals.inMode, &drained.inMode)
        drained.mode = arrivals.mode
      }
      if !arrivals.addressed.isEmpty { swap(&arrivals.addressed, &drained.addressed) }
      if !arrivals.jobs.isEmpty { swap(&arrivals.jobs, &drained.jobs) }
      if !arrivals.handOffs.isEmpty {
        swap(&arrivals.handOffs, &drained.handOffs)
        drained.handOffSignal = arrivals.handOffSignal
      }
      hasEntries.store(false, ordering: .relaxed)
    }
    lock.unlock()
  }

  /// Returns the entries queued for a mode that have not been taken, in posting order; can be called from any thread.
  func waiting(for mode: ModeState, isDefault: Bool) -> [WaitingWork] {
    let isCommon = mode.isCommon.load(ordering: .relaxed)
    var found: [WaitingWork] = []
    lock.withLock {
      if isDefault { arrivals.inDefaultMode.forEachFirst { found.append(.init($0.sequence, $0.work)) } }
      if isCommon { arrivals.jobs.forEachFirst { found.append(.init($0.sequence, $0.work)) } }
      arrivals.addressed.forEachFirst { if let work = $0.waiting(for: mode, isCommon) { found.append(work) } }
      arrivals.handOffs.forEachFirst {
        if let work = $0.waiting(for: mode, isCommon, isHandOff: true) { found.append(work) }
      }
      for index in found.indices { found[index].site = crl_post_site(recorder, found[index].sequence) }
    }
    return found.sorted { $0.sequence < $1.sequence }
  }

  var lastSequence: UInt64 { lock.withLock { arrivals.lastSequence } }

  func rejectAll() {
    lock.withLock { isClosed = true }
  }

  var rejectsAll: Bool { lock.withLock { isClosed } }

  /// Checks the inbox's invariants, for tests.
  func checkInvariants() {
    lock.withLock {
      arrivals.checkInvariants()
      precondition(hasEntries.load(ordering: .relaxed) == !arrivals.isEmpty, "the hint is exact under the lock")
    }
  }
}

/// The arrivals in an inbox by destination, each in order of arrival.
struct Arrivals: ~Copyable {
  struct Addressed {
    let sequence: UInt64
    let block: AddressedBlock

    /// Adds the block to the queues of its modes.
    func distribute(
      toCommon: (BlockQueue.Entry) -> Void, toMode: (BlockQueue.Entry, ModeState) -> Void
    ) {
      switch block {
      case .inMode(let mode, let block): toMode(.init(sequence: sequence, work: .single(block)), mode)
      case .inCommonModes(let block): toCommon(.init(sequence: sequence, work: .single(block)))
      case .inModes(let shared):
        let entry = BlockQueue.Entry(sequence: sequence, work: .shared(shared))
        if shared.isForCommonModes { toCommon(entry) }
        for mode in shared.modes { toMode(entry, mode) }
      }
    }

    /// Returns the work if it may run in a mode.
    func waiting(for mode: ModeState, _ isCommon: Bool, isHandOff: Bool = false) -> WaitingWork? {
      switch block {
      case .inMode(let own, let block) where own === mode: WaitingWork(sequence, .single(block), isHandOff: isHandOff)
      case .inCommonModes(let block) where isCommon: WaitingWork(sequence, .single(block), isHandOff: isHandOff)
      case .inModes(let shared) where shared.isFor(mode, isCommon: isCommon):
        WaitingWork(sequence, .shared(shared), isHandOff: isHandOff)
      case .inMode, .inCommonModes, .inModes: nil
      }
    }
  }

  /// The sequence number of the last entry.
  var lastSequence: UInt64 = 0
  var inDefaultMode = MoveQueue<BlockQueue.Entry>()
  /// Blocks for one other mode, and that mode.
  var inMode = MoveQueue<BlockQueue.Entry>()
  var mode: ModeState?
  var modeName: RunLoop.Mode?
  /// Blocks for arbitrary modes.
  var addressed = MoveQueue<Addressed>()
  /// Executor jobs.
  var jobs = MoveQueue<BlockQueue.Entry>()
  /// Hand-offs, and the position of the first one in the order of all signals.
  var handOffs = MoveQueue<Addressed>()
  var handOffSignal: UInt64 = 0

  /// Returns the sequence number for the next entry.
  @inline(__always)
  mutating func nextSequence() -> UInt64 {
    lastSequence += 1
    return lastSequence
  }

  var isEmpty: Bool { inDefaultMode.isEmpty && inMode.isEmpty && addressed.isEmpty && jobs.isEmpty && handOffs.isEmpty }

  /// Checks the invariants, for tests.
  func checkInvariants() {
    inDefaultMode.checkInvariants()
    inMode.checkInvariants()
    addressed.checkInvariants()
    jobs.checkInvariants()
    handOffs.checkInvariants()
  }
}

/// Work that is queued in an inbox.
struct WaitingWork {
  let sequence: UInt64
  /// The address of the user's function.
  let code: UInt64
  let isJob: Bool
  let isHandOff: Bool
  /// The call site that posted the work, if it was recorded.
  var site: UInt64 = 0

  init(_ sequence: UInt64, _ work: BlockQueue.Work, isHandOff: Bool = false) {
    self.sequence = sequence
    self.isHandOff = isHandOff
    switch work {
    case .single(let block): (code, isJob) = (block.code, false)
    case .shared(let shared): (code, isJob) = (shared.block?.code ?? 0, false)
    case .job(let job): (code, isJob) = (job.code, true)
    }
  }
}
