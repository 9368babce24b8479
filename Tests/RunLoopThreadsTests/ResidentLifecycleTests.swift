// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopThreads

@Suite("The lifecycle of a resident thread", .timeLimit(.minutes(20)))
struct ResidentLifecycleTests {
  enum State: String, CaseIterable, Codable, Sendable {
    case running, draining, stopping, finished, finishedDrained, finishedStopped

    var lifecycle: ResidentLifecycle {
      var lifecycle = ResidentLifecycle()
      if self == .draining || self == .finishedDrained { _ = lifecycle.stop(.afterPendingWork) }
      if self == .stopping || self == .finishedStopped { _ = lifecycle.stop(.immediately) }
      if rawValue.hasPrefix("finished") { lifecycle.finish() }
      return lifecycle
    }

    var state: ResidentThread.State {
      switch self {
      case .running: .running
      case .draining: .draining
      case .stopping: .stopping
      case .finished, .finishedDrained, .finishedStopped: .finished
      }
    }
  }

  @Test("every lifecycle state is reached by its events, and only one accepts work", arguments: State.allCases)
  func states(state: State) {
    #expect(state.lifecycle.state == state.state)
    #expect(state.lifecycle.takesWork == (state == .running))
  }

  @Test("a stop after the pending work drains a running thread, and affects no other state", arguments: State.allCases)
  func stopAfterPendingWork(state: State) {
    var lifecycle = state.lifecycle
    let action = lifecycle.stop(.afterPendingWork)
    #expect(action == (state == .running ? .stop : .nothing))
    #expect(lifecycle.state == (state == .running ? .draining : state.state))
  }

  @Test("an immediate stop ends a running or draining thread, and affects no other state", arguments: State.allCases)
  func stopImmediately(state: State) {
    var lifecycle = state.lifecycle
    let action = lifecycle.stop(.immediately)
    switch state {
    case .running: #expect(action == .stop && lifecycle.state == .stopping)
    case .draining: #expect(action == .escalate && lifecycle.state == .stopping)
    default: #expect(action == .nothing && lifecycle.state == state.state)
    }
  }

  @Test("every lifecycle state finishes once", arguments: State.allCases)
  func finish(state: State) async {
    if state.state == .finished {
      switch state {
      case .finishedDrained:
        await #expect(processExitsWith: .failure) { ResidentLifecycleTests.finishAgain(.finishedDrained) }
      case .finishedStopped:
        await #expect(processExitsWith: .failure) { ResidentLifecycleTests.finishAgain(.finishedStopped) }
      default:
        await #expect(processExitsWith: .failure) { ResidentLifecycleTests.finishAgain(.finished) }
      }
    } else {
      var lifecycle = state.lifecycle
      lifecycle.finish()
      #expect(lifecycle.state == .finished)
    }
  }

  private static func finishAgain(_ state: State) {
    var lifecycle = state.lifecycle
    lifecycle.finish()
  }
}
