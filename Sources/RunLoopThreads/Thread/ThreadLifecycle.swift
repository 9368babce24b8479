// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of a thread, as a value: each event is a function that changes it and returns what is to be done.
struct ThreadLifecycle: Hashable, Sendable {
  enum Phase: Hashable, Sendable {
    case created
    case starting
    case executing
    case finished
  }

  private(set) var phase = Phase.created
  private(set) var isCancelled = false

  /// A thread that runs already when its object is made.
  static let foreign: ThreadLifecycle = {
    var lifecycle = ThreadLifecycle()
    lifecycle.phase = .executing
    return lifecycle
  }()

  /// A thread that has finished when its object is made.
  static let ended: ThreadLifecycle = {
    var lifecycle = ThreadLifecycle()
    lifecycle.phase = .finished
    return lifecycle
  }()

  enum StartAction: Hashable, Sendable {
    /// Ask the system for a thread.
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

  /// Called when the system has made no thread.
  mutating func startFailed() {
    precondition(phase == .starting, "a start failed in \(self)")
    phase = .finished
  }

  /// The new thread's first step.
  mutating func begin() {
    precondition(phase == .starting, "a thread began in \(self)")
    phase = .executing
  }

  /// The thread's last step.
  mutating func end() {
    precondition(phase == .executing, "a thread ended in \(self)")
    phase = .finished
  }

  /// Marks the thread; its body has to check.
  mutating func cancel() {
    isCancelled = true
  }
}
