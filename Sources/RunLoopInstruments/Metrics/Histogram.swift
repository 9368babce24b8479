// SPDX-License-Identifier: Apache-2.0

/// Lengths of time, counted in steps of a factor of two.
public struct Histogram: Sendable, Hashable, Codable {
  /// How many lengths are in each step: the first is below 1024 ns, each next below twice as much.
  public private(set) var counts: [Int] = []
  /// How many lengths there are in all.
  public private(set) var count = 0
  /// The sum of the times, in nanoseconds.
  public private(set) var sum: Int64 = 0
  /// The longest time, in nanoseconds.
  public private(set) var longest: Int64 = 0

  /// Makes an empty histogram.
  public init() {}

  init(counts: [Int], sum: Int64, longest: Int64) {
    (self.counts, self.sum, self.longest) = (counts, sum, longest)
    count = counts.reduce(0, +)
  }

  /// Adds a time in nanoseconds; a negative time counts as zero.
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

  /// The end of a step, in nanoseconds, which does not belong to it.
  public static func end(ofStep step: Int) -> Int64 { step >= 53 ? .max : 1024 << Int64(step) }

  /// A time, in nanoseconds, that the given part of all times does not exceed: the end of its step, or the longest.
  ///
  /// - Parameter part: Between zero and one, such as 0.99.
  /// - Returns: Nil if there are no times.
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
