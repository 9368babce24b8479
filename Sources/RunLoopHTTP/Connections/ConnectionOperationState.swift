// SPDX-License-Identifier: Apache-2.0

/// The state machine of an operation on the network thread, as a value: each event changes the state and returns the
/// step to perform there.
///
/// Every combination of phase and event is defined. The phases are those of AFNetworking's `AFURLConnectionOperation`.
package struct ConnectionOperationState: Sendable, Hashable {
  package enum Phase: Sendable, Hashable, CaseIterable {
    case ready, executing, paused, finished
  }

  package enum Event: Sendable, Hashable, CaseIterable {
    case start, pause, resume, cancel
    /// The connection has ended.
    case end
  }

  /// A step that is performed on the network thread.
  package enum Hop: Sendable, Hashable {
    /// Create and start the connection.
    case start
    case pause
    /// Resume the paused connection.
    case resume
    /// Cancel the connection, if there is one, and end the operation.
    case cancel
  }

  package private(set) var phase = Phase.ready
  package private(set) var isCancelled = false
  private var hasStarted = false
  private var isEnding = false

  package init() {}

  package mutating func apply(_ event: Event) -> Hop? {
    switch event {
    case .start: return start()
    case .pause:
      guard !isCancelled, phase == .ready || phase == .executing else { return nil }
      defer { phase = .paused }
      return phase == .executing ? .pause : nil
    case .resume:
      guard !isCancelled, phase == .paused else { return nil }
      phase = .ready
      return start()
    case .cancel:
      guard !isCancelled, phase != .finished else { return nil }
      isCancelled = true
      // An operation that was never started ends once it is started, like all operations in Foundation. A queue does
      // not start one that is paused.
      if !hasStarted { phase = .ready }
      isEnding = hasStarted
      return hasStarted ? .cancel : nil
    case .end:
      phase = .finished
      return nil
    }
  }

  private mutating func start() -> Hop? {
    guard phase == .ready, !isEnding else { return nil }
    guard !isCancelled else {
      isEnding = true
      return .cancel
    }
    phase = .executing
    defer { hasStarted = true }
    return hasStarted ? .resume : .start
  }
}
