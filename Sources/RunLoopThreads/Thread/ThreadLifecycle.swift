// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of a thread, as a state machine whose events return the action to perform.
struct ThreadLifecycle: Hashable, Sendable {
  enum Phase: Hashable, Sendable {
    case created
    case starting
    case executing
    case finished
  }

  private(set) var phase = Phase.created
  private(set) var isCancelled = false

  /// A thread that was already running when its object was created.
  static let foreign: ThreadLifecycle = {
    var lifecycle = ThreadLifecycle()
    lifecycle.phase = .executing
    return lifecycle
  }()

  /// A thread that had already finished when its object was created.
  static let ended: ThreadLifecycle = {
    var lifecycle = ThreadLifecycle()
    lifecycle.phase = .finished
    return lifecycle
  }()

  enum StartAction: Hashable, Sendable {
    /// Create a thread.
    case create
    case reject(Rejection)
  }

  enum Rejection: Hashable, Sendable {
    case alreadyStarted
    case cancelled
  }

  mutating func start() -> StartAction {
    guard phase == .created else { return .reject(.alreadyStarted) }
    guard !isCancelled else {
      phase = .finished
      return .reject(.cancelled)
    }
    phase = .starting
    return .create
  }

  /// Called when the system could not create the thread.
  mutating func startFailed() {
    precondition(phase == .starting, "a start failed in \(self)")
    phase = .finished
  }

  /// Called as the first step of the new thread.
  mutating func begin() {
    precondition(phase == .starting, "a thread began in \(self)")
    phase = .executing
  }

  /// Called as the last step of the thread.
  mutating func end() {
    precondition(phase == .executing, "a thread ended in \(self)")
    phase = .finished
  }

  /// Marks the thread as cancelled; its body has to check for this.
  mutating func cancel() {
    isCancelled = true
  }
}
