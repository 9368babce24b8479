// SPDX-License-Identifier: Apache-2.0

// Ports, which add themselves: a subclass may do so in its own way.
extension RunLoop {
  /// Adds a port to a mode, or, for ``Mode/common``, to every common mode, present and future.
  ///
  /// The loop calls the port's ``Port/schedule(in:forMode:)``, once until the port is removed from the mode. A port
  /// keeps the loop alive and wakes it when a message arrives. The loop holds the port until it is removed or
  /// invalidated. The loop rejects and reports an invalid port, and every port once its thread has ended; where a
  /// `Bool` is expected, the call returns whether the port was added. Can be called from any thread.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  public func add(_ port: Port, forMode mode: Mode) { _ = accept(port, mode) }

  func accept(_ port: Port, _ mode: Mode) -> Bool {
    guard port.isValid else { return reject(.invalidItem) }
    switch adopt(port, mode) {
    case .rejected(let rejection): return reject(rejection)
    case .before(let comesWithSources):
      // It may have left a mode since, as any item may: removed from one of the common modes, or from all of them.
      let isIn = comesWithSources || join(port, mode)
      tellOfItem(mode)
      return isIn
    case .now: port.schedule(in: self, forMode: mode)
    }
    tellOfItem(mode)
    guard port.isValid, !takesNoItems else { return false }
    if !holds(port, mode) {
      table.withLock { $0.noteSources(of: port, mode) }
      LoadHook.portCameWithSources.call(port)
    }
    return true
  }

  /// Removes a port from a mode, or, for ``Mode/common``, a common port from every common mode.
  ///
  /// The loop calls the port's ``Port/remove(from:forMode:)`` if the port was added. Can be called from any thread. The
  /// corresponding Foundation method is `remove(_:forMode:)`.
  public func remove(_ port: Port, forMode mode: Mode) {
    if disown(port, mode) || holds(port, mode) { port.remove(from: self, forMode: mode) }
  }

  /// Whether a port was added to a mode, or, for ``Mode/common``, to the common items.
  ///
  /// Can be called from any thread.
  public func contains(_ port: Port, forMode mode: Mode) -> Bool {
    holds(port, mode) || table.withLock { $0.comesWithSources(port, mode) }
  }

  private enum Adoption {
    case now
    /// It was added before, and may have added sources of its own instead of entering the mode.
    case before(comesWithSources: Bool)
    case rejected(Rejection)
  }

  /// Takes hold of a port that is to be added to a mode.
  private func adopt(_ port: Port, _ mode: Mode) -> Adoption {
    table.checkFork()
    port.lockItem()
    defer { port.unlockItem() }
    guard port.isOpen else { return .rejected(.invalidItem) }
    return table.withLock { table in
      guard !table.isDead else { return .rejected(.endedLoop) }
      let isFirst = table.addedPorts[ObjectIdentifier(port)] == nil
      guard table.insertAdded(port, mode) else { return .before(comesWithSources: table.comesWithSources(port, mode)) }
      if isFirst { port.registrations.setAdopted(true, by: self) }
      return .now
    }
  }

  /// Lets go of a port that is removed from a mode; returns false if it was not added.
  ///
  /// The caller holds the port.
  @discardableResult
  func disown(_ port: Port, _ mode: Mode) -> Bool {
    table.checkFork()
    port.lockItem()
    defer { port.unlockItem() }
    return table.withLock { table in
      guard table.removeAdded(port, mode) else { return false }
      if table.addedPorts[ObjectIdentifier(port)] == nil { port.registrations.setAdopted(false, by: self) }
      return true
    }
  }
}

extension ModeTable {
  /// A port that was added, and the modes that it was added to.
  struct AddedPort {
    let port: Port
    var modes: Set<RunLoop.Mode> = []
    /// Those of the modes for which the port added sources of its own, and which it did not enter itself.
    var modesOfSources: Set<RunLoop.Mode> = []
  }
}
