// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phase 11 of the pass: one class of ready things.

extension RunLoop {
  /// Serves one class of ready things: the main dispatch queue if phase 7 has found its work, the descriptors that the
  /// wait has found, or else the class whose turn it is; returns true if a source was handled.
  @inline(__always)
  func serveOneClass(_ mode: ModeState) -> Bool {
    innermost.mayAskMainQueue = true
    innermost.hasPutOff = false
    // Without a turn of its own, since it is asked in every other pass: the turn is that of the others.
    if notices.contains(.mainQueue) { return drainMainQueue(mode) == .source }
    // The wait has checked the descriptors only if it was their turn, or if nothing else was ready when it began.
    if mode.isWatching.load(ordering: .relaxed) {
      let served = serveDescriptors(mode)
      if served != .nothing {
        rotation = ReadyClass.descriptors.rawValue + 1
        return isServedByHost() || served == .source
      }
    }
    guard
      mode.timerCount > 0 || mode.mayHaveReadyPorts.load(ordering: .relaxed)
        || !notices.isEmpty || mode.servesMainQueue.load(ordering: .relaxed)
    else { return false }
    return serveInTurn(mode)
  }

  private func serveInTurn(_ mode: ModeState) -> Bool {
    for turn in 0..<ReadyClass.allCases.count {
      let readyClass = ReadyClass.allCases[(rotation + turn) % ReadyClass.allCases.count]
      let served: Served =
        switch readyClass {
        case .timers: fireDueTimers(mode) ? .other : .nothing
        case .mainQueue: drainMainQueue(mode)
        case .descriptors: .nothing
        case .ports: servePort(mode)
        }
      if served == .nothing { continue }
      rotation = readyClass.rawValue + 1
      return isServedByHost() || served == .source
    }
    return isServedByHost()
  }

  /// Whether another class is ready whose turn comes before that of the descriptors.
  ///
  /// Called under the table's lock, before the kernel is asked.
  func servesOthersFirst(_ mode: ModeState, _ set: PollSet) -> Bool {
    for turn in 0..<ReadyClass.allCases.count {
      switch ReadyClass.allCases[(rotation + turn) % ReadyClass.allCases.count] {
      case .timers: if mode.timerCount > 0, mode.timers.firstTick <= tickNow { return true }
      case .mainQueue: if hasMainQueueWork(set, mode) { return true }
      case .ports: if findReadyPort(mode) { return true }
      case .descriptors: return false
      }
    }
    return false
  }

  /// Lets what has woken the loop begin before what became ready later; returns true if phase 11 is left to the next
  /// pass.
  ///
  /// Blocks and jobs are run at once. For sources and hand-offs, which phase 5 of the next pass performs, phase 11 is
  /// put off; never twice in a row, so that each class still has its turn.
  @inline(never)
  func putsOffServing(_ mode: ModeState) -> Bool {
    let cause = innermost.wakeCause
    innermost.wakeCause = .unknown
    guard cause == .source else {
      performBlocks(mode)
      return false
    }
    takeArrivals()
    guard !innermost.hasPutOff, hasHandOff(mode) || hasSignalledSource(mode) else { return false }
    innermost.hasPutOff = true
    innermost.mayAskMainQueue = true
    // A source may read what was found, so the next pass asks again.
    hasFoundDescriptors = false
    return true
  }

  /// Whether the host has handled a source of its own in this pass.
  func isServedByHost() -> Bool { notices.remove(.host) != nil }

  /// The classes of things that can be ready after a wait.
  ///
  /// Each pass serves one class, in turn, so that none starves another.
  enum ReadyClass: Int, CaseIterable {
    case timers
    case mainQueue
    case descriptors
    case ports
  }

  /// The result of serving one class of ready things.
  enum Served {
    /// Nothing was ready.
    case nothing
    /// Something was served that does not end a run: a timer, or a descriptor whose source has ended.
    case other
    /// A source, a port or the main dispatch queue: a run that returns after a source does so now.
    case source
  }

  /// Serves the descriptors that the wait has found, one source for each of them.
  ///
  /// A run that returns after a source serves one. A stop ends the batch, and so does a nested run, which may have read
  /// what was found. The next wait asks again for the rest of the batch.
  private func serveDescriptors(_ mode: ModeState) -> Served {
    guard hasFoundDescriptors else { return .nothing }
    let wait = waitCount
    var served = Served.nothing
    repeat {
      let next = serveNextDescriptor(mode)
      if next == .nothing { break }
      if served != .source { served = next }
      takeUpLevel()
    } while hasFoundDescriptors && wait == waitCount && !(served == .source && innermost.returnsAfterSource)
      && !isStopped(mode)
    hasFoundDescriptors = false
    return served
  }

  /// Calls the source of the next descriptor of the batch.
  ///
  /// This is a function of its own, so that its reference to the source is gone when it returns: that may be the last
  /// reference, whose release may run the loop.
  private func serveNextDescriptor(_ mode: ModeState) -> Served {
    var isSuspect = false
    let next = table.locked {
      mode.pollSet.map(Unmanaged.passUnretained)?._withUnsafeGuaranteedRef {
        let next = $0.takeNext()
        isSuspect = $0.isSuspect
        return next
      } ?? nil
    }
    guard let (source, events) = next else { return .nothing }
    let isCalled =
      isSuspect
      ? serveSuspect(source, events, mode) { call(source, events, mode) } : call(source, events, mode)
    return isCalled ? .source : .other
  }

  @inline(__always)
  private func call(_ source: DescriptorSource, _ events: DescriptorSource.Events, _ mode: ModeState) -> Bool {
    calling(
      CRL_KIND_SOURCE1, mode,
      CallNote(hook: .source1, code: source.heldCode { source.code }, item: itemAddress(source))
    ) { source.call(events) }
  }

  /// Receives the messages that the port whose turn it is has now, up to a limit.
  ///
  /// A run that returns after a source receives one. Whatever ends a batch of descriptors ends this too, and so does
  /// the port's removal from the mode.
  private func servePort(_ mode: ModeState) -> Served {
    guard mode.mayHaveReadyPorts.load(ordering: .relaxed), let place = takeReadyPort(mode), place.item.hold() else {
      return .nothing
    }
    let port = place.item
    defer { port.letGo() }
    let wait = waitCount
    var served = Served.nothing
    var rest = innermost.returnsAfterSource ? 1 : min(port.messages, Self.mostMessages)
    // Another loop may be faster.
    while rest > 0, let taken = port.takeMessage() {
      rest -= 1
      // The port is queued behind the others before the call-out: a run nested in it receives the next message.
      if served == .nothing, port.hasMessage { noteReady(place) }
      calling(
        CRL_KIND_SOURCE1, mode,
        CallNote(hook: .source1, code: port.code, item: itemAddress(port), tag: Origin.tag(taken.number))
      ) { runLoopIsCallingOutToASource1(port, taken.message) }
      served = .source
      takeUpLevel()
      guard wait == waitCount, !isStopped(mode), isIn(place) else { break }
    }
    return served
  }

  /// The largest number of messages of a port that one pass receives.
  static var mostMessages: Int { 64 }
}

// What the loop's thread takes from the table.
extension RunLoop {
  /// Whether a port of the mode has a message; called under the table's lock.
  func findReadyPort(_ mode: ModeState) -> Bool {
    if mode.readyPorts.peekFirst(unless: { !$0.hasMessage }) { return true }
    mode.mayHaveReadyPorts.store(false, ordering: .relaxed)
    return false
  }

  private func takeReadyPort(_ mode: ModeState) -> Membership<Port>? {
    table.withLock { _ in findReadyPort(mode) ? mode.readyPorts.takeFirst { _ in false } : nil }
  }

  private func isIn(_ place: Membership<Port>) -> Bool { table.withLock { _ in place.isActive } }

  /// Notes that a port has a message; called under the port's lock, or on the loop's thread.
  func noteReady(_ membership: Membership<Port>) {
    table.withLock { _ in membership.mode.enqueue(membership) }
  }
}
