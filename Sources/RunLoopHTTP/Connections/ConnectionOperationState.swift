// SPDX-License-Identifier: Apache-2.0

/// The life of an operation on the network thread, as a value: each event changes it and returns what hops there.
///
/// Every pair of phase and event is defined. The phases are those of AFNetworking's `AFURLConnectionOperation`.
package struct ConnectionOperationState: Sendable, Hashable {
  package enum Phase: Sendable, Hashable, CaseIterable {
    case ready, executing, paused, finished
  }

  package enum Event: Sendable, Hashable, CaseIterable {
    case start, pause, resume, cancel
    /// The connection has ended.
    case end
  }

  /// What is done on the network thread.
  package enum Hop: Sendable, Hashable {
    /// The connection is made and started.
    case start
    case pause
    /// The connection goes on where it was paused.
    case resume
    /// The connection is cancelled, if there is one, and the operation ends.
    case cancel
  }

  package private(set) var phase = Phase.ready
  package private(set) var isCancelled = false
  /// Whether there is a connection.
  private var hasStarted = false
  /// Whether the end is on its way.
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
      // One that was never started waits for its start, as every operation of Foundation's does.
      guard hasStarted else { return nil }
      isEnding = true
      return .cancel
    case .end:
      phase = .finished
      return nil
    }
  }

  private mutating func start() -> Hop? {
    guard phase == .ready || (isCancelled && phase == .paused), !isEnding else { return nil }
    guard !isCancelled else {
      isEnding = true
      return .cancel
    }
    phase = .executing
    defer { hasStarted = true }
    return hasStarted ? .resume : .start
  }
}
