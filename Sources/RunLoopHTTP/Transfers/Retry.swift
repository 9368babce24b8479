// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP {
  /// A policy for retrying failed requests.
  ///
  /// Only requests with idempotent methods are retried, after a connection error, a status of 429, 502, 503 or 504, or
  /// a 408 on a reused connection. A request that the server has not processed is sent again regardless of this
  /// policy; see ``ResendReason/unprocessed``.
  public struct Retry: Sendable, Hashable {
    /// The maximum number of retries; the default is 0.
    public var maximumCount: Int
    /// The delay before the first retry, which doubles with each further one; the default is 100 milliseconds.
    public var delay: Duration = .milliseconds(100)
    /// The longest delay; the default is 2 seconds.
    public var maximumDelay: Duration = .seconds(2)
    /// The longest `Retry-After` to honor, 60 seconds by default; a response with a longer one is delivered.
    public var maximumRetryAfter: Duration = .seconds(60)

    /// Creates a policy.
    public init(maximumCount: Int = 0) { self.maximumCount = maximumCount }

    static func isForRetry(_ status: HTTP.Status) -> Bool {
      switch status {
      case 429, 502, 503, 504: true
      default: false
      }
    }

    static let codes: Set<Error.Code> = [.cannotConnect, .connectionLost]

    /// Returns the delay before a retry, which doubles each time and is reduced at random by up to half.
    func delay(before number: Int, chance: Double) -> Duration {
      let longest = Int64(saturating: maximumDelay)
      var time = Int64(saturating: delay)
      for _ in 1..<max(1, min(number, 32)) where time < longest { time.addSaturating(time) }
      time = min(time, longest)
      return .nanoseconds(time - Int64(Double(time) * 0.5 * chance))
    }

    /// Returns the delay that the headers request; nil if they do not.
    static func retryAfter(_ headers: Headers, now: Int64) -> Duration? {
      guard let text = headers["Retry-After"] else { return nil }
      if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
        return .seconds(min(Int64(text) ?? .max, 1 << 30))
      }
      return WebDate.read(text).map { .seconds(max(0, min($0 - now, 1 << 30))) }
    }
  }
}
