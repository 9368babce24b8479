// SPDX-License-Identifier: Apache-2.0

/// How a device and its terminal stand, as a value: each event is a function that changes it and says what is to be
/// done.
struct TerminalState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// Not taken.
    case closed
    /// Taken.
    case open
    /// Restored for a time: the process is stopped, or about to be.
    case suspended
    /// Gone: nothing comes from it, and nothing is shown on it any more.
    case hungUp
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// Restore the terminal, and let go of it.
    case restoreAndRelease
    /// Let go of it: it was restored already, or has gone.
    case release
    /// Restore it, and stop the process.
    case restoreAndStop
    /// Take it, as it was taken before.
    case take
    /// Let go of it, and report that it has gone.
    case releaseAndReport
  }

  private(set) var phase = Phase.closed

  /// It was taken.
  ///
  /// - Precondition: It was not.
  mutating func open() {
    precondition(phase == .closed, "a terminal was taken in \(self)")
    phase = .open
  }

  /// It is not needed any more.
  mutating func close() -> Action {
    defer { phase = .closed }
    return switch phase {
    case .closed: .nothing
    case .open: .restoreAndRelease
    case .suspended, .hungUp: .release
    }
  }

  /// The process is to be stopped.
  mutating func suspend() -> Action {
    guard phase == .open else { return .nothing }
    phase = .suspended
    return .restoreAndStop
  }

  /// The process continues, after it was stopped by itself or by somebody who did not say so.
  mutating func resume() -> Action {
    switch phase {
    case .open, .suspended:
      phase = .open
      return .take
    case .closed, .hungUp: return .nothing
    }
  }

  /// The terminal has gone.
  mutating func hangUp() -> Action {
    switch phase {
    case .open, .suspended:
      phase = .hungUp
      return .releaseAndReport
    case .closed, .hungUp: return .nothing
    }
  }
}
