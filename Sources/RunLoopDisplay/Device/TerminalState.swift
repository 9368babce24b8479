// SPDX-License-Identifier: Apache-2.0

/// The state machine of a device and its terminal, whose methods return the action to perform.
struct TerminalState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// The device is not open.
    case closed
    /// The device is open.
    case open
    /// The terminal is restored while the process is stopped or about to be stopped.
    case suspended
    /// The terminal was disconnected, and can be neither read nor written.
    case hungUp
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// Restore the terminal and release it.
    case restoreAndRelease
    /// Release the terminal, which is already restored or disconnected.
    case release
    /// Restore the terminal and stop the process.
    case restoreAndStop
    /// Open the terminal again.
    case take
    /// Release the terminal, and report that it was disconnected.
    case releaseAndReport
  }

  private(set) var phase = Phase.closed

  /// The device was opened.
  ///
  /// - Precondition: It was closed.
  mutating func open() {
    precondition(phase == .closed, "a terminal was taken in \(self)")
    phase = .open
  }

  /// The device is being closed.
  mutating func close() -> Action {
    defer { phase = .closed }
    return switch phase {
    case .closed: .nothing
    case .open: .restoreAndRelease
    case .suspended, .hungUp: .release
    }
  }

  /// The process is about to be stopped.
  mutating func suspend() -> Action {
    guard phase == .open else { return .nothing }
    phase = .suspended
    return .restoreAndStop
  }

  /// The process continues, whether this device or something else stopped it.
  mutating func resume() -> Action {
    switch phase {
    case .open, .suspended:
      phase = .open
      return .take
    case .closed, .hungUp: return .nothing
    }
  }

  mutating func hangUp() -> Action {
    switch phase {
    case .open, .suspended:
      phase = .hungUp
      return .releaseAndReport
    case .closed, .hungUp: return .nothing
    }
  }
}
