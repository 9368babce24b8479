// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phase 11 of the pass: serving one class of ready events.

extension RunLoop {
  /// Serves one class of ready events, and returns whether a source was handled.
  ///
  /// It is the main dispatch queue if phase 7 found work for it, else the descriptors found by the wait, else the
  /// class whose turn it is.
  @inline(__always)
  func serveOneClass(_ mode: ModeState) -> Bool {
    innermost.mayAskMainQueue = true
    innermost.hasPutOff = false
    // The main queue can be served in every other pass, so this does not use up the turn of another class.
    if notices.contains(.mainQueue) { return drainMainQueue(mode) == .source }
    // The wait polled the descriptors only if it was their turn, or if nothing else was ready when it began.
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
  /// Called before the kernel is polled. Requires the table's lock.
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

  /// Serves the work that woke the loop before work that became ready later, and returns whether phase 11 must be left
  /// to the next pass.
  ///
  /// Blocks and jobs run immediately. For sources and hand-offs, which phase 5 of the next pass performs, phase 11 is
  /// postponed. It is never postponed twice in a row, so that every class gets its turn.
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
    // A source may consume what was found, so the next pass polls again.
    hasFoundDescriptors = false
    return true
  }

  /// Whether the host has handled one of its own sources in this pass.
  func isServedByHost() -> Bool { notices.remove(.host) != nil }

  /// The classes of events that can be ready after a wait.
  ///
  /// Each pass serves one class, in round-robin order, so that no class starves another.
  enum ReadyClass: Int, CaseIterable {
    case timers
    case mainQueue
    case descriptors
    case ports
  }

  /// The result of serving one class of ready events.
  enum Served {
    /// Nothing was ready.
    case nothing
    /// Something was served that does not end a run: a timer, or a descriptor whose source has been invalidated.
    case other
    /// A source, a port or the main dispatch queue was served, which ends a run that returns after a source.
    case source
  }

  /// Serves the descriptors that the wait found, one source for each.
  ///
  /// A run that returns after a source serves only one. A stop ends the batch, and so does a nested run, which may
  /// have consumed what was found. The next wait reports the rest of the batch again.
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
  /// This is a separate function so that its reference to the source is released on return. It may be the last one,
  /// and releasing it may run code that runs the loop.
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
    if _slowPath(innermost.starvation != 0) { noteStarvation(of: source) }
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

  /// Receives the messages currently queued at the port whose turn it is, up to a limit.
  ///
  /// A run that returns after a source receives only one. The batch ends for the same reasons as a batch of
  /// descriptors, and also when the port is removed from the mode.
  private func servePort(_ mode: ModeState) -> Served {
    guard mode.mayHaveReadyPorts.load(ordering: .relaxed), let place = takeReadyPort(mode), place.item.hold() else {
      return .nothing
    }
    let port = place.item
    defer { port.letGo() }
    let wait = waitCount
    var served = Served.nothing
    var rest = innermost.returnsAfterSource ? 1 : min(port.messages, Self.mostMessages)
    // Another loop may take the message first.
    while rest > 0, let taken = port.takeMessage() {
      rest -= 1
      // The port is queued behind the others before the call-out, so that a nested run receives the next message.
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

  /// The maximum number of messages that one pass receives from a port.
  static var mostMessages: Int { 64 }
}

// Reading ready items from the table on the loop's thread.
extension RunLoop {
  /// Whether a port of the mode has a message (requires the table's lock).
  func findReadyPort(_ mode: ModeState) -> Bool {
    if mode.readyPorts.peekFirst(unless: { !$0.hasMessage }) { return true }
    mode.mayHaveReadyPorts.store(false, ordering: .relaxed)
    return false
  }

  private func takeReadyPort(_ mode: ModeState) -> Membership<Port>? {
    table.withLock { _ in findReadyPort(mode) ? mode.readyPorts.takeFirst { _ in false } : nil }
  }

  private func isIn(_ place: Membership<Port>) -> Bool { table.withLock { _ in place.isActive } }

  /// Notes that a port has a message; called on the loop's thread, or with the port's lock held.
  func noteReady(_ membership: Membership<Port>) {
    table.withLock { _ in membership.mode.enqueue(membership) }
  }
}
