// SPDX-License-Identifier: Apache-2.0

import Synchronization

// The steps of a pass that call out.

extension RunLoop {
  /// Calls the observers of one stage, as the mode has them when the stage begins.
  @inline(__always)
  func notify(_ activity: Activity, _ mode: ModeState) {
    if mode.mayHaveObservers(of: activity) { notifyObservers(activity, mode) }
  }

  @inline(never)
  private func notifyObservers(_ activity: Activity, _ mode: ModeState) {
    trace(.activity(activity), mode)
    if let lists = mode.observers(of: activity, of: self) { ObserverLists.call(activity, of: lists, by: self) }
  }

  /// Performs the signalled sources of the mode in their order, the one of the hand-offs among them; true if one performed.
  ///
  /// A run that returns after a source performs at most one; the others stay signalled.
  @inline(__always)
  func performSources(_ mode: ModeState) -> Bool {
    let hasHandOff = hasHandOff(mode)
    guard mode.mayHaveSignalled.load(ordering: .relaxed) else { return hasHandOff && performHandOffs(mode) }
    return performSignalledSources(mode, hasHandOff: hasHandOff)
  }

  private func performSignalledSources(_ mode: ModeState, hasHandOff: Bool) -> Bool {
    // Mostly there is one.
    if !hasHandOff, let only = table.withLock({ _ in mode.signalled.only }), only.claimSignal() {
      perform(only, mode)
      return true
    }
    let start = sources.count
    collectSignalled(mode)
    // Where the source of the hand-offs stands among them.
    var handOffPlace = -1
    if hasHandOff {
      handOffPlace = (start..<sources.count).first { handOffsStand(before: sources[$0], mode) } ?? sources.count
    }
    var handled = false
    for index in start...sources.count {
      if index == handOffPlace, performHandOffs(mode) { handled = true }
      guard index < sources.count, !(innermost.returnsAfterSource && handled) else { break }
      let source = sources[index]
      guard source.claimSignal() else { continue }
      perform(source, mode)
      handled = true
      if innermost.returnsAfterSource { break }
    }
    // One by one: the last reference to a source may go here, and what that runs may run the loop.
    while sources.count > start { _ = sources.removeLast() }
    return handled
  }

  @inline(__always)
  private func perform(_ source: Source, _ mode: ModeState) {
    calling(
      RecordKind.source0, mode, hook: .source0, code: source.code, item: itemAddress(source),
      tag: Origin.tag(source.signalOrder)
    ) { source.perform() }
  }

  /// Serves one class of ready things: the descriptors that the wait has found, or else the class whose turn it is; true if a
  /// source was handled.
  @inline(__always)
  func serveOneClass(_ mode: ModeState) -> Bool {
    innermost.mayAskMainQueue = true
    // The wait has asked for descriptors only if it was their turn, or if nothing else was ready when it began.
    if mode.isWatching.load(ordering: .relaxed), let served = serveDescriptors(mode) {
      rotation = ReadyClass.descriptors.rawValue + 1
      return isServedByHost() || served == .source
    }
    guard
      mode.mayHaveTimers.load(ordering: .relaxed) || mode.mayHaveReadyPorts.load(ordering: .relaxed)
        || !notices.isEmpty || mode.servesMainQueue.load(ordering: .relaxed)
    else { return false }
    return serveInTurn(mode)
  }

  private func serveInTurn(_ mode: ModeState) -> Bool {
    for turn in 0..<ReadyClass.allCases.count {
      let readyClass = ReadyClass.allCases[(rotation + turn) % ReadyClass.allCases.count]
      let served: Served? =
        switch readyClass {
        case .timers: fireDueTimers(mode) ? .other : nil
        case .mainQueue: drainMainQueue(mode)
        case .descriptors: nil
        case .ports: servePort(mode)
        }
      guard let served else { continue }
      rotation = readyClass.rawValue + 1
      return isServedByHost() || served == .source
    }
    return isServedByHost()
  }

  /// Whether another class is ready whose turn comes before that of the descriptors.
  ///
  /// Under the table's lock, before the kernel is asked.
  func servesOthersFirst(_ mode: ModeState) -> Bool {
    for turn in 0..<ReadyClass.allCases.count {
      switch ReadyClass.allCases[(rotation + turn) % ReadyClass.allCases.count] {
      case .timers: if mode.timerCount > 0, mode.timers.firstTick <= tickNow { return true }
      case .mainQueue: if notices.contains(.mainQueue) { return true }
      case .ports: if findReadyPort(mode) { return true }
      case .descriptors: return false
      }
    }
    return false
  }

  /// Whether the host has handled a source of its own in this pass.
  private func isServedByHost() -> Bool { notices.remove(.host) != nil }

  /// What can be ready after a wait.
  ///
  /// Each pass serves one class, in turn, so that none starves another.
  enum ReadyClass: Int, CaseIterable {
    case timers
    case mainQueue
    case descriptors
    case ports
  }

  /// What a class of ready things has done.
  ///
  /// Nil: nothing was ready.
  private enum Served {
    /// A source was handled, as ``RunResult/handledSource`` counts it.
    case source
    case other
  }

  /// Serves the descriptors that the wait has found, one source for each of them; nil if there is none.
  ///
  /// A run that returns after a source serves one. A stop ends the batch, and so does a nested run, which may have read what
  /// was found. What is left of a batch is asked for again by the next wait.
  private func serveDescriptors(_ mode: ModeState) -> Served? {
    guard hasFoundDescriptors else { return nil }
    let wait = waitCount
    var served: Served?
    while hasFoundDescriptors, let (source, events) = takeNextDescriptor(mode) {
      let isHandled = calling(
        RecordKind.source1, mode, hook: .source1, code: source.code, item: itemAddress(source)
      ) { source.call(events) }
      if isHandled || served == nil { served = isHandled ? .source : .other }
      guard wait == waitCount, !(isHandled && innermost.returnsAfterSource), !isStopped(mode) else { break }
    }
    hasFoundDescriptors = false
    return served
  }

  private func servePort(_ mode: ModeState) -> Served? {
    guard mode.mayHaveReadyPorts.load(ordering: .relaxed), let port = takeReadyPort(mode), port.hold() else {
      return nil
    }
    defer { port.letGo() }
    let taken = port.takeMessage()
    requeue(port, mode)
    // Another loop may have been faster.
    guard let taken else { return nil }
    callOut(to: port, taken.message, number: taken.number, mode)
    return .source
  }
}

// The main dispatch queue, on the main loop.
extension RunLoop {
  /// What a wait has found beside what is in the mode, for the same pass.
  struct Notices: OptionSet {
    let rawValue: UInt8

    /// The main dispatch queue's notice of work has been taken, and the work is to be done.
    static let mainQueue = Notices(rawValue: 1 << 0)
    /// The host has handled a source of its own.
    static let host = Notices(rawValue: 1 << 1)
  }

  /// Whether the main dispatch queue has work, asked without waiting: then the pass does not wait either.
  ///
  /// It is not asked in the first pass of a run, nor in the pass after it was drained, so that it alternates with everything
  /// else.
  @inline(__always)
  func isMainQueueReady(_ mode: ModeState) -> Bool {
    guard innermost.mayAskMainQueue, isServingMainQueue(mode), MainQueue.takeNotice() else { return false }
    notices.insert(.mainQueue)
    lastSleepBegan = .never
    // The epoll set may have been told of the same work.
    table.withLock { _ in mode.pollSet?.isMainQueueReady = false }
    rotation = ReadyClass.mainQueue.rawValue
    return true
  }

  /// Runs what was queued on the main dispatch queue before now.
  private func drainMainQueue(_ mode: ModeState) -> Served? {
    guard isServingMainQueue(mode) else { return nil }
    if notices.remove(.mainQueue) == nil {
      guard let set = table.withLock({ _ in mode.pollSet }), set.isMainQueueReady else { return nil }
      set.isMainQueueReady = false
      guard MainQueue.takeNotice() else { return nil }
    }
    isDrainingMainQueue = true
    callOutToMainQueue(mode)
    isDrainingMainQueue = false
    innermost.mayAskMainQueue = false
    return .source
  }
}

// What the loop's thread takes from the table.
extension RunLoop {
  /// Whether a source of the mode is signalled.
  ///
  /// Under the table's lock.
  func findSignalled(_ mode: ModeState) -> Bool {
    if mode.signalled.peekFirst(unless: { $0.unlist() }) { return true }
    mode.mayHaveSignalled.store(false, ordering: .relaxed)
    return false
  }

  /// Whether a port of the mode has a message.
  ///
  /// Under the table's lock.
  func findReadyPort(_ mode: ModeState) -> Bool {
    if mode.readyPorts.peekFirst(unless: { !$0.hasMessage }) { return true }
    mode.mayHaveReadyPorts.store(false, ordering: .relaxed)
    return false
  }

  func hasSignalledSource(_ mode: ModeState) -> Bool {
    mode.mayHaveSignalled.load(ordering: .relaxed) && table.withLock { _ in findSignalled(mode) }
  }

  /// Appends the mode's marked sources to ``sources``, by order and then by their first signal.
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

  private func takeNextDescriptor(
    _ mode: ModeState
  ) -> (source: RunLoop.DescriptorSource, events: RunLoop.DescriptorSource.Events)? {
    table.withLock { _ in mode.unretainedPollSet?._withUnsafeGuaranteedRef { $0.takeNext() } ?? nil }
  }

  private func takeReadyPort(_ mode: ModeState) -> Port? {
    table.withLock { _ in findReadyPort(mode) ? mode.readyPorts.takeFirst { _ in false }?.item : nil }
  }

  /// Puts a port that still has messages behind the others, before the call-out: a run nested in it receives the next.
  private func requeue(_ port: Port, _ mode: ModeState) {
    guard port.hasMessage else { return }
    table.withLock { _ in if let membership = mode.ports[ObjectIdentifier(port)] { mode.enqueue(membership) } }
  }

  /// Notes that a source was signalled.
  ///
  /// Under the source's lock.
  func noteSignalled(_ membership: Membership<Source>) {
    table.withLock { _ in membership.mode.enqueue(membership) }
    if sabotage.contains(.signalsWake) { wakeUp() }
  }

  /// Notes that a port has a message.
  ///
  /// Under the port's lock.
  func noteReady(_ membership: Membership<Port>) {
    table.withLock { _ in membership.mode.enqueue(membership) }
  }
}
