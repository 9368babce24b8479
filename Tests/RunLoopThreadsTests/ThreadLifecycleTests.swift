// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopThreads

@Suite("The lifecycle of a thread", .timeLimit(.minutes(20)))
struct ThreadLifecycleTests {
  /// All states, named by the events that lead to them.
  enum Path: String, CaseIterable, Codable, Sendable {
    case created, starting, executing, finished, failed
    case cancelled, cancelledStarting, cancelledExecuting, cancelledFinished, rejected

    var lifecycle: ThreadLifecycle {
      var lifecycle = ThreadLifecycle()
      if self == .cancelled || self == .rejected { lifecycle.cancel() }
      guard self != .created, self != .cancelled else { return lifecycle }
      _ = lifecycle.start()
      switch self {
      case .created, .cancelled, .starting, .cancelledStarting, .rejected: break
      case .failed: lifecycle.startFailed()
      case .executing, .cancelledExecuting: lifecycle.begin()
      case .finished, .cancelledFinished:
        lifecycle.begin()
        lifecycle.end()
      }
      if rawValue.hasPrefix("cancelled") { lifecycle.cancel() }
      return lifecycle
    }

    var phase: ThreadLifecycle.Phase {
      switch self {
      case .created, .cancelled: .created
      case .starting, .cancelledStarting: .starting
      case .executing, .cancelledExecuting: .executing
      case .finished, .failed, .cancelledFinished, .rejected: .finished
      }
    }

    var isCancelled: Bool { rawValue.hasPrefix("cancelled") || self == .rejected }
  }

  @Test("every state is reached by its events", arguments: Path.allCases)
  func states(path: Path) {
    let lifecycle = path.lifecycle
    #expect(lifecycle.phase == path.phase && lifecycle.isCancelled == path.isCancelled)
  }

  @Test("a start creates a thread once, and none if it was cancelled before", arguments: Path.allCases)
  func start(path: Path) {
    var lifecycle = path.lifecycle
    let action = lifecycle.start()
    switch path {
    case .created: #expect(action == .create && lifecycle.phase == .starting)
    case .cancelled: #expect(action == .reject(.cancelled) && lifecycle.phase == .finished)
    default: #expect(action == .reject(.alreadyStarted) && lifecycle == path.lifecycle)
    }
  }

  @Test("a cancel marks every state and changes none", arguments: Path.allCases)
  func cancel(path: Path) {
    var lifecycle = path.lifecycle
    lifecycle.cancel()
    #expect(lifecycle.phase == path.phase && lifecycle.isCancelled)
  }

  @Test("after its start a thread begins or could not be created", arguments: [Path.starting, .cancelledStarting])
  func leaveStarting(path: Path) {
    var begun = path.lifecycle
    begun.begin()
    #expect(begun.phase == .executing && begun.isCancelled == path.isCancelled)
    var failed = path.lifecycle
    failed.startFailed()
    #expect(failed.phase == .finished && failed.isCancelled == path.isCancelled)
  }

  @Test("an executing thread ends", arguments: [Path.executing, .cancelledExecuting])
  func end(path: Path) {
    var lifecycle = path.lifecycle
    lifecycle.end()
    #expect(lifecycle.phase == .finished && lifecycle.isCancelled == path.isCancelled)
  }

  @Test("a thread created by other code is executing, and a vanished one has finished")
  func foreign() {
    #expect(ThreadLifecycle.foreign.phase == .executing && !ThreadLifecycle.foreign.isCancelled)
    #expect(ThreadLifecycle.ended.phase == .finished && !ThreadLifecycle.ended.isCancelled)
  }

  @Test("impossible thread transitions stop the process", arguments: [Path.created, .executing, .finished])
  func impossibleBegin(path: Path) async {
    switch path {
    case .created:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.begin(.created) }
    case .executing:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.begin(.executing) }
    default:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.begin(.finished) }
    }
    switch path {
    case .created:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.failToStart(.created) }
    case .executing:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.failToStart(.executing) }
    default:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.failToStart(.finished) }
    }
  }

  private static func failToStart(_ path: Path) {
    var lifecycle = path.lifecycle
    lifecycle.startFailed()
  }

  private static func begin(_ path: Path) {
    var lifecycle = path.lifecycle
    lifecycle.begin()
  }

  @Test("a thread that is not executing cannot end", arguments: [Path.created, .starting, .finished])
  func impossibleEnd(path: Path) async {
    switch path {
    case .created:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.end(.created) }
    case .starting:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.end(.starting) }
    default:
      await #expect(processExitsWith: .failure) { ThreadLifecycleTests.end(.finished) }
    }
  }

  private static func end(_ path: Path) {
    var lifecycle = path.lifecycle
    lifecycle.end()
  }
}
