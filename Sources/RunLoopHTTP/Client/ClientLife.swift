// SPDX-License-Identifier: Apache-2.0

/// The state machine of a client's lifetime, as a value.
struct ClientLife: Sendable, Hashable {
  private(set) var state = HTTP.State.running
  /// The number of requests that have begun and not ended.
  private(set) var pending = 0
  private(set) var report = HTTP.StopReport()

  enum StopAction: Sendable, Hashable {
    case nothing
    /// End the paused requests and let the others finish.
    case drain
    /// End every request.
    case cut
  }

  /// Records that a request begins, or returns false if the client no longer accepts requests.
  mutating func begin() -> Bool {
    guard state == .running else {
      report.rejectedCount += 1
      return false
    }
    pending += 1
    return true
  }

  mutating func end(_ error: HTTP.Error?) {
    pending -= 1
    switch error?.code {
    case nil: report.completedCount += 1
    case .stopped?: report.stoppedCount += 1
    case .cancelled?: report.cancelledCount += 1
    default: report.failedCount += 1
    }
  }

  mutating func stop(_ policy: HTTP.StopPolicy) -> StopAction {
    switch (state, policy) {
    case (.running, .afterPendingWork):
      state = .draining
      return .drain
    case (.running, .immediately), (.draining, .immediately):
      state = .stopping
      return .cut
    case (.draining, .afterPendingWork), (.stopping, _), (.finished, _): return .nothing
    }
  }

  /// Whether the client is stopping and no requests are left.
  var isOver: Bool { (state == .draining || state == .stopping) && pending == 0 }

  mutating func finish() { state = .finished }
}

extension HTTP {
  /// The state of a client.
  public enum State: Sendable, Hashable {
    /// The client accepts requests.
    case running
    /// The client accepts no more requests, and pending requests run to completion.
    case draining
    /// The client accepts no more requests, and pending requests end with ``HTTP/Error/Code/stopped``.
    case stopping
    /// The client's connections are closed.
    case finished
  }

  /// The treatment of pending requests when their client is stopped.
  public enum StopPolicy: Sendable, Hashable {
    /// Pending requests run to completion, except paused ones, which end with ``HTTP/Error/Code/stopped``.
    case afterPendingWork
    /// Pending requests end with ``HTTP/Error/Code/stopped``.
    case immediately
  }

  /// A summary of how a client's requests ended.
  public struct StopReport: Sendable, Hashable {
    /// The number of requests that received a response, 0 by default.
    public internal(set) var completedCount = 0
    /// The number of requests that failed with an error other than a stop or a cancellation, 0 by default.
    public internal(set) var failedCount = 0
    /// The number of requests that were cancelled, 0 by default.
    public internal(set) var cancelledCount = 0
    /// The number of requests that were ended by the stop, 0 by default.
    public internal(set) var stoppedCount = 0
    /// The number of requests that were made after the stop and rejected, 0 by default.
    public internal(set) var rejectedCount = 0
  }
}
