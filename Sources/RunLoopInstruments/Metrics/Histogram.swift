// SPDX-License-Identifier: Apache-2.0

/// A histogram of durations with power-of-two buckets.
public struct Histogram: Sendable, Hashable, Codable {
  /// The number of durations in each bucket.
  ///
  /// The first bucket ends at 1024 ns, and each following one at twice the previous.
  public private(set) var counts: [Int] = []
  /// The total number of durations.
  public private(set) var count = 0
  /// The sum of the durations, in nanoseconds.
  public private(set) var sum: Int64 = 0
  /// The longest duration, in nanoseconds.
  public private(set) var longest: Int64 = 0

  /// Creates an empty histogram.
  public init() {}

  init(counts: [Int], sum: Int64, longest: Int64) {
    (self.counts, self.sum, self.longest) = (counts, sum, longest)
    count = counts.reduce(0, +)
  }

  /// Adds a duration in nanoseconds; a negative duration counts as zero.
  public mutating func add(_ nanoseconds: Int64) {
    let value = max(0, nanoseconds)
    let step = Histogram.step(of: value)
    if counts.count <= step { counts += Array(repeating: 0, count: step + 1 - counts.count) }
    counts[step] += 1
    count += 1
    sum = sum.addingReportingOverflow(value).overflow ? .max : sum + value
    longest = max(longest, value)
  }

  private static func step(of value: Int64) -> Int { max(0, Int64.bitWidth - value.leadingZeroBitCount - 10) }

  /// Returns the exclusive upper bound of a bucket, in nanoseconds.
  public static func end(ofStep step: Int) -> Int64 { step >= 53 ? .max : 1024 << Int64(step) }

  /// Returns an upper bound for a quantile in nanoseconds: the end of its bucket or the longest duration, if that is
  /// less.
  ///
  /// - Parameter part: The quantile, from 0 to 1, such as 0.99.
  /// - Returns: The upper bound, or nil if the histogram is empty.
  public func quantile(_ part: Double) -> Int64? {
    guard count > 0 else { return nil }
    let wanted = (min(max(part, 0), 1) * Double(count)).rounded(.up)
    var seen = 0
    for (step, number) in counts.enumerated() {
      seen += number
      if Double(seen) >= max(wanted, 1) { return min(Histogram.end(ofStep: step), longest) }
    }
    return longest
  }
}
