import Synchronization

// The steps of a pass that call out.

extension RunLoop {
  /// Calls the observers of one stage, as the mode has them when the stage begins.
  @inline(__always)
  func notify(_ activity: Activity, _ mode: ModeState) {
    if tracer.isOn { trace(.activity(activity), mode) }
    guard let observers = mode.observers(of: activity, of: self) else { return }
    for observer in observers { observer.call(activity) }
  }

  /// Performs the marked sources of the mode in their order; true if one performed.
  ///
  /// A run that returns after a source performs at most one; the others stay marked.
  @inline(__always)
  func performSources(_ mode: ModeState) -> Bool {
    guard mode.mayHaveSignalled.load(ordering: .relaxed) else { return false }
    return performSignalledSources(mode)
  }

  private func performSignalledSources(_ mode: ModeState) -> Bool {
    let start = sources.count
    collectSignalled(mode)
    var handled = false
    for index in start..<sources.count {
      let source = sources[index]
      guard !(innermost.returnsAfterSource && handled) else { break }
      guard source.claimSignal() else { continue }
      trace(.callOut(.source0), mode)
      if source.perform() { handled = true }
      trace(.callOutEnded(.source0), mode)
    }
    sources.removeSubrange(start...)
    return handled
  }

  /// Serves one class of ready things, beginning with the one whose turn it is; true if a source was handled.
  @inline(__always)
  func serveOneClass(_ mode: ModeState) -> Bool {
    let mayHaveTimers = mode.mayHaveTimers.load(ordering: .relaxed)
    let mayHavePorts = mode.mayHaveReadyPorts.load(ordering: .relaxed)
    guard mayHaveTimers || mayHavePorts else { return false }
    for turn in 0..<ReadyClass.allCases.count {
      let readyClass = ReadyClass.allCases[(rotation + turn) % ReadyClass.allCases.count]
      switch readyClass {
      case .timers where mayHaveTimers:
        guard fireDueTimers(mode) else { continue }
        rotation = readyClass.rawValue + 1
        return false
      case .ports where mayHavePorts:
        guard let port = takeReadyPort(mode) else { continue }
        rotation = readyClass.rawValue + 1
        return receiveOne(port, mode)
      default: continue
      }
    }
    return false
  }

  /// What can be ready after a wait.
  ///
  /// Each pass serves one class, in turn, so that none starves another.
  enum ReadyClass: Int, CaseIterable {
    case timers
    case ports
  }
}

// What the loop's thread takes from the table.
extension RunLoop {
  /// Drops from the mode's list what is not signalled any more.
  ///
  /// Under the table's lock.
  func purgeSignalled(_ mode: ModeState) {
    mode.signalled.purge { $0.isSignalled }
    if mode.signalled.isEmpty { mode.mayHaveSignalled.store(false, ordering: .relaxed) }
  }

  /// Drops from the mode's list the ports whose messages another loop has taken.
  ///
  /// Under the table's lock.
  func purgeReadyPorts(_ mode: ModeState) {
    mode.readyPorts.purge { $0.hasMessage }
    if mode.readyPorts.isEmpty { mode.mayHaveReadyPorts.store(false, ordering: .relaxed) }
  }

  func hasSignalledSource(_ mode: ModeState) -> Bool {
    guard mode.mayHaveSignalled.load(ordering: .relaxed) else { return false }
    return table.withLock { _ in
      purgeSignalled(mode)
      return !mode.signalled.isEmpty
    }
  }

  /// Appends the mode's marked sources to ``sources``, by order and then by their first signal.
  private func collectSignalled(_ mode: ModeState) {
    let start = sources.count
    table.withLock { _ in
      purgeSignalled(mode)
      for entry in mode.signalled.entries { sources.append(entry.item) }
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

  private func takeReadyPort(_ mode: ModeState) -> Port? {
    table.withLock { _ in
      purgeReadyPorts(mode)
      return mode.readyPorts.isEmpty ? nil : mode.readyPorts.takeFirst().item
    }
  }

  /// Receives one message; false if another loop was faster.
  private func receiveOne(_ port: Port, _ mode: ModeState) -> Bool {
    guard port.hold() else { return false }
    defer { port.letGo() }
    let message = port.takeMessage()
    requeue(port, mode)
    guard let message else { return false }
    trace(.callOut(.source1), mode)
    runLoopIsCallingOutToASource1(port, message)
    trace(.callOutEnded(.source1), mode)
    return true
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
  }

  /// Notes that a port has a message.
  ///
  /// Under the port's lock.
  func noteReady(_ membership: Membership<Port>) {
    table.withLock { _ in membership.mode.enqueue(membership) }
  }
}
