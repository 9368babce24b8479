// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// Ends the loop with its thread.
  ///
  /// Sources are cancelled, timers and observers become free to join another loop, blocks are dropped and counted, and
  /// everything posted or added afterwards is rejected. Must be called on the loop's own thread; ``current`` still
  /// returns the loop during the call.
  func end() {
    stopFlag.endEveryRun()
    abandonGuests()
    dropHost()
    endAbandonedCallOuts()
    tellUnreadItem()
    let (items, ports) = table.withLock { table in
      table.die()
      return (table.allItems, table.addedPorts.values.map(\.port))
    }
    for item in items where item.hold() {
      expel(item)
      item.letGo()
    }
    // Ports that added sources of their own instead.
    for port in ports { expel(port) }
    let droppedBefore = counters.droppedBlocks.load(ordering: .relaxed)
    discardRemainingBlocks()
    reportUnserved(items, blockCount: counters.droppedBlocks.load(ordering: .relaxed) - droppedBefore)
    endDeferredWork()
    endAttachments()
    for mode in table.withLock({ $0.modes.values }) { mode.dropObserverLists() }
    // Releases what a pass was about to call, in case the thread ended inside a call-out.
    while !sources.isEmpty { _ = sources.removeLast() }
    releaseDueTimers(from: 0)
    waiter.loopHasEnded()
  }

  /// Reports the contents of a loop that was never run on a thread that used another library's loop.
  ///
  /// Running that other loop does not serve this one.
  private func reportUnserved(_ items: [any ModeItem], blockCount: Int) {
    guard !hasRun, servesOtherLoop, isOnSystemTime else { return }
    let itemCount = items.count { !($0 is Observer) }
    guard itemCount + blockCount > 0 else { return }
    if threadService == nil { LoadHook.loopLooksForOther.call(self) }
    guard threadService != nil else { return }
    Diagnostic.unservedItems.report(
      "\(Self.callingThreadDescription) ends, and its run loop was never run, with \(itemCount) items and \(blockCount) blocks: runs "
        + "of Foundation's loop do not serve them on this thread; run RunLoopKit's RunLoop.current, which serves both")
  }

  /// Rejects further blocks and jobs, drops the queued blocks, and passes the queued jobs to `takeJob` in posting
  /// order.
  ///
  /// Must be called on the loop's own thread, either outside every run or while the thread ends inside one.
  ///
  /// - Parameter takeJob: A closure that takes a job. By default, it runs the job immediately. Jobs are never dropped
  ///   because a task that awaits one would wait forever.
  package func discardRemainingBlocks(_ takeJob: (LoopJob) -> Void = { $0.runner.run($0) }) {
    inbox.rejectAll()
    var remaining: [BlockQueue.Work] = []
    while let work = takeFirstRemaining(through: .max) { remaining.append(work) }
    let jobs = remaining.compactMap { if case .job(let job) = $0 { job } else { nil } }
    counters.droppedBlocks.wrappingAdd(remaining.count - jobs.count, ordering: .relaxed)
    // Released before the jobs run, because a job may check whether a block was released.
    remaining = []
    for job in jobs { takeJob(job) }
  }

  /// The sequence number of the latest post of any kind (thread-safe).
  package var lastPost: UInt64 { inbox.lastSequence }

  /// Runs every block and job posted up to the sequence number `last`, for any mode, in posting order.
  ///
  /// Must be called on the loop's own thread outside every run. For a thread that shuts down gracefully.
  package func runRemainingBlocks(through last: UInt64, while mayGoOn: () -> Bool) {
    noteDraining(true)
    defer { noteDraining(false) }
    while mayGoOn(), let work = takeFirstRemaining(through: last) {
      takeUpLevel()
      switch work {
      case .single(let block):
        callingOnThisThread(CRL_KIND_BLOCK, code: block.code, item: 0) { runLoopIsCallingOutToABlock(block) }
      case .shared: break
      case .job(let job):
        callingOnThisThread(CRL_KIND_JOB, code: job.code, item: 0) { runLoopIsCallingOutToAnExecutorJob(job) }
      }
    }
  }

  /// The number of timers in the loop, and the number of sources, ports and descriptor sources.
  package var itemCounts: (timers: Int, sources: Int) {
    let items = table.withLock { $0.allItems }
    let timers = items.count { $0 is Timer }
    return (timers, items.count { !($0 is Observer) } - timers)
  }

  /// Removes and returns the earliest block or job of all modes, unless it was posted after `last`.
  ///
  /// - Complexity: O(modes), plus O(n) in the number of abandoned runs.
  private func takeFirstRemaining(through last: UInt64) -> BlockQueue.Work? {
    takeArrivals()
    while true {
      var queues: [(first: UInt64, take: () -> BlockQueue.Entry?)] = [
        (blocks.common.firstSequence, { [self] in blocks.common.takeFirst() }),
        (blocks.jobs.firstSequence, { [self] in blocks.jobs.takeFirst() }),
        (blocks.commonHandOffs.firstSequence, { [self] in blocks.commonHandOffs.takeFirst() }),
      ]
      for mode in table.withLock({ Array($0.modes.values) }) {
        queues.append((mode.blocks.firstSequence, { mode.blocks.takeFirst() }))
        queues.append((mode.handOffs.firstSequence, { mode.handOffs.takeFirst() }))
      }
      if let left = blocks.firstRunning { queues.append((left.firstSequence, { left.takeNext() })) }
      guard let next = queues.min(by: { $0.first < $1.first }), next.first != .max, next.first <= last else {
        return nil
      }
      if let work = next.take()?.work.take() { return work }
    }
  }
}

extension ModeTable {
  /// Every item in the loop, without duplicates.
  var allItems: [any ModeItem] {
    var items: [ObjectIdentifier: any ModeItem] = commonItems.mapValues(\.item)
    for mode in modes.values {
      for item in mode.items { items[ObjectIdentifier(item)] = item }
    }
    return Array(items.values)
  }
}

extension ModeState {
  /// The mode's sources, ports, timers and observers (requires the table's lock).
  var items: [any ModeItem] {
    var items: [any ModeItem] = sources.values.map(\.item)
    for membership in ports.values { items.append(membership.item) }
    for membership in descriptors.values { items.append(membership.item) }
    for timer in timers.all { items.append(timer) }
    for observer in observers { items.append(observer) }
    return items
  }
}
