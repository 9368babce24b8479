// SPDX-License-Identifier: Apache-2.0

/// What becomes of a client, as a value.
struct ClientLife: Sendable, Hashable {
  private(set) var state = HTTP.State.running
  /// How many requests have begun and not ended.
  private(set) var pending = 0
  private(set) var report = HTTP.StopReport()

  enum StopAction: Sendable, Hashable {
    case nothing
    /// Requests that wait for the program end; the others come to their end.
    case drain
    /// Every request ends.
    case cut
  }

  /// A request wants to begin; false if it is too late for it.
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

  /// Whether nothing is left to do.
  var isOver: Bool { (state == .draining || state == .stopping) && pending == 0 }

  mutating func finish() { state = .finished }
}

extension HTTP {
  /// What a client does with requests.
  public enum State: Sendable, Hashable {
    /// It takes requests.
    case running
    /// It takes no more requests, and those that have begun go on to their end.
    case draining
    /// It takes no more requests, and those that have begun end with ``HTTP/Error/Code/stopped``.
    case stopping
    /// Its connections are closed.
    case finished
  }

  /// What happens to requests that have begun when their client is stopped.
  public enum StopPolicy: Sendable, Hashable {
    /// They go on to their end; requests that are paused end with ``HTTP/Error/Code/stopped``.
    case afterPendingWork
    /// They end with ``HTTP/Error/Code/stopped``.
    case immediately
  }

  /// What has happened to a client's requests.
  public struct StopReport: Sendable, Hashable {
    /// Requests that have a response.
    public internal(set) var completedCount = 0
    /// Requests that ended with an error of their own.
    public internal(set) var failedCount = 0
    /// Requests that were cancelled.
    public internal(set) var cancelledCount = 0
    /// Requests that the stop has ended.
    public internal(set) var stoppedCount = 0
    /// Requests that arrived after the stop.
    public internal(set) var rejectedCount = 0
  }
}
