// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP {
  /// When a request that failed is made again.
  ///
  /// Only idempotent methods are repeated, after an error of the connection, one of the statuses 429, 502, 503 and 504,
  /// or a 408 on a kept connection. A request that the server has not processed is sent again without this; see
  /// ``ResendReason/unprocessed``.
  public struct Retry: Sendable, Hashable {
    /// How many times a request is made again; zero unless asked for.
    public var maximumCount: Int
    /// The first time to wait, which doubles with each retry.
    public var delay: Duration = .milliseconds(100)
    /// The longest time to wait.
    public var maximumDelay: Duration = .seconds(2)
    /// The longest `Retry-After` that is waited for; a response that asks for a longer time is delivered.
    public var maximumRetryAfter: Duration = .seconds(60)

    /// Makes a policy.
    public init(maximumCount: Int = 0) { self.maximumCount = maximumCount }

    /// Whether an answer of this status is none for now.
    static func isForRetry(_ status: HTTP.Status) -> Bool {
      switch status {
      case 429, 502, 503, 504: true
      default: false
      }
    }

    static let codes: Set<Error.Code> = [.cannotConnect, .connectionLost]

    /// How long to wait before a retry: the time doubles, and up to half of it is left to chance.
    func delay(before number: Int, chance: Double) -> Duration {
      let longest = Int64(saturating: maximumDelay)
      var time = Int64(saturating: delay)
      for _ in 1..<max(1, min(number, 32)) where time < longest { time.addSaturating(time) }
      time = min(time, longest)
      return .nanoseconds(time - Int64(Double(time) * 0.5 * chance))
    }

    /// How long a head asks to wait; nil if it does not.
    static func retryAfter(_ headers: Headers, now: Int64) -> Duration? {
      guard let text = headers["Retry-After"] else { return nil }
      if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
        return .seconds(min(Int64(text) ?? .max, 1 << 30))
      }
      return WebDate.read(text).map { .seconds(max(0, min($0 - now, 1 << 30))) }
    }
  }
}
