// SPDX-License-Identifier: Apache-2.0

// Ports add themselves, so that a subclass can override how.
extension RunLoop {
  func accept(_ port: Port, _ mode: Mode) -> Bool {
    guard port.isValid else { return reject(.invalidItem) }
    switch adopt(port, mode) {
    case .rejected(let rejection): return reject(rejection)
    case .before(let comesWithSources):
      // The port may have left a mode in the meantime: it can be removed from one common mode or from all of them.
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

  private enum Adoption {
    case now
    /// The port was added before, and may have added sources of its own instead of entering the mode.
    case before(comesWithSources: Bool)
    case rejected(Rejection)
  }

  /// Registers a port that is about to be added to a mode.
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

  /// Unregisters a port that is removed from a mode, and returns `false` if it was not added.
  ///
  /// The caller must hold the port.
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
  /// A port that was added, with the modes to which it was added.
  struct AddedPort {
    let port: Port
    var modes: Set<RunLoop.Mode> = []
    /// The modes for which the port added sources of its own instead of entering the mode itself.
    var modesOfSources: Set<RunLoop.Mode> = []
  }
}
