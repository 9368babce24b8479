// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// Ends the loop with its thread: sources leave with their cancel call-outs, timers and observers are free to join
  /// another loop, blocks are dropped and counted, and from now on everything is rejected.
  ///
  /// Called on the loop's own thread, for which it still is ``current`` meanwhile.
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
    // The ports that have added sources of their own.
    for port in ports { expel(port) }
    let droppedBefore = counters.droppedBlocks.load(ordering: .relaxed)
    discardRemainingBlocks()
    reportUnserved(items, blockCount: counters.droppedBlocks.load(ordering: .relaxed) - droppedBefore)
    endDeferredWork()
    endAttachments()
    for mode in table.withLock({ $0.modes.values }) { mode.dropObserverLists() }
    // What a pass was about to call, if the thread ended in one of its call-outs.
    while !sources.isEmpty { _ = sources.removeLast() }
    releaseDueTimers(from: 0)
    waiter.loopHasEnded()
  }

  /// Reports what was in a loop that was never run, if the thread has used another library's loop, whose runs do not
  /// serve it.
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

  /// Rejects blocks and jobs from now on, drops the blocks that wait, and hands the jobs over in the order of their
  /// posts.
  ///
  /// Called on the loop's own thread, outside every run, or at the end of a thread that has left a run by ending.
  ///
  /// - Parameter takeJob: Takes a job. A job is never dropped, because a task that waits for it would wait forever. By
  ///   default it runs here.
  package func discardRemainingBlocks(_ takeJob: (LoopJob) -> Void = { $0.runner.run($0) }) {
    inbox.rejectAll()
    var remaining: [BlockQueue.Work] = []
    while let work = takeFirstRemaining(through: .max) { remaining.append(work) }
    let jobs = remaining.compactMap { if case .job(let job) = $0 { job } else { nil } }
    counters.droppedBlocks.wrappingAdd(remaining.count - jobs.count, ordering: .relaxed)
    // Released before the jobs run, because the jobs may check what has become of them.
    remaining = []
    for job in jobs { takeJob(job) }
  }

  /// The place of the last post of any kind in the order of all posts; can be used from any thread.
  package var lastPost: UInt64 { inbox.lastSequence }

  /// Runs every block and job that was posted up to a place in the order of all posts, for any mode, in that order.
  ///
  /// Called on the loop's own thread, outside every run, for a thread that ends its work in an orderly way.
  package func runRemainingBlocks(through last: UInt64, while mayGoOn: () -> Bool) {
    while mayGoOn(), let work = takeFirstRemaining(through: last) {
      switch work {
      case .single(let block): runLoopIsCallingOutToABlock(block)
      case .shared: break
      case .job(let job): runLoopIsCallingOutToAnExecutorJob(job)
      }
    }
  }

  /// The number of timers, and of sources, ports and descriptor sources, that are in the loop.
  package var itemCounts: (timers: Int, sources: Int) {
    let items = table.withLock { $0.allItems }
    let timers = items.count { $0 is Timer }
    return (timers, items.count { !($0 is Observer) } - timers)
  }

  /// Takes the block or job that was posted first, of all modes, unless it was posted later than `last`.
  ///
  /// - Complexity: O(modes), and O(n) in the runs that the thread has left.
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
  /// Everything that is in the loop, each item once.
  var allItems: [any ModeItem] {
    var items: [ObjectIdentifier: any ModeItem] = commonItems.mapValues(\.item)
    for mode in modes.values {
      for item in mode.items { items[ObjectIdentifier(item)] = item }
    }
    return Array(items.values)
  }
}

extension ModeState {
  /// The items of the mode: sources, ports, timers, observers; used under the table's lock.
  var items: [any ModeItem] {
    var items: [any ModeItem] = sources.values.map(\.item)
    for membership in ports.values { items.append(membership.item) }
    for membership in descriptors.values { items.append(membership.item) }
    for timer in timers.all { items.append(timer) }
    for observer in observers { items.append(observer) }
    return items
  }
}
