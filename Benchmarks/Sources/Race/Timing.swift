// SPDX-License-Identifier: Apache-2.0

import CRace

/// W6 and W7: counts operations until there are enough, or 0.3 seconds have passed.
///
/// Nothing waits in these, so they are measured in processor time, on which other processes have less influence.
public struct Stopwatch {
  private let count: Int64
  private let before = race_now()
  private let cpuBefore = race_cpu()
  private var done: Int64 = 0

  /// Starts a stopwatch for `count` operations.
  public init(_ count: Int64) { self.count = race_scaled(count, 1000) }

  /// Runs `operation` in batches, and returns the nanoseconds for each.
  @inlinable
  public static func time(_ count: Int64, batch: Int = 1000, _ operation: () -> Void) -> Double {
    var watch = Stopwatch(count)
    repeat { for _ in 0..<batch { operation() } } while !watch.isEnough(batch)
    return watch.each
  }

  /// Reports the nanoseconds for each operation, and without the client's part, which is measured with nothing in
  /// place of the operation.
  @inlinable
  public static func report(_ metric: String, _ count: Int64, operation: () -> Void, client: () -> Void) {
    let each = time(count, operation)
    race_report(metric, each, "ns")
    race_report(metric + ", net", each - time(count, client), "ns")
  }

  @usableFromInline
  mutating func isEnough(_ batch: Int) -> Bool {
    done += Int64(batch)
    return done >= count || race_now() - before > race_scaled(300_000_000, 10_000_000)
  }

  @usableFromInline var each: Double { Double(race_cpu() - cpuBefore) / Double(done) }
}

/// The pseudo-random dates of the timer workloads, the same for all peers.
public struct RandomDates {
  @usableFromInline var state: UInt64

  /// Restarts the sequence.
  @inlinable
  public init() { state = 0x9e37_79b9_7f4a_7c15 }

  /// Returns an index below `count`.
  @inlinable
  public mutating func index(_ count: Int64) -> Int { Int(race_random(&state) % UInt64(count)) }

  /// Returns nanoseconds within a span.
  @inlinable
  public mutating func within(_ span: Int64) -> Int64 { Int64(race_random(&state) % UInt64(span)) }

  /// Returns a duration between one and two minutes, in nanoseconds.
  @inlinable
  public mutating func far() -> Int64 { 60_000_000_000 + within(60_000_000_000) }
}

/// W5: the measurement of one-shot timers.
public struct OneShots {
  /// The number of timers.
  public let count: Int64
  /// The nanoseconds within which they fire.
  public let span: Int64
  private let cpu = race_cpu()
  private var begin: Int64 = 0
  private var created: Int64 = 0
  private var last: Int64 = 0

  /// Starts the measurement.
  public init(_ full: Int64) {
    count = race_scaled(full, 1000)
    span = race_scaled(2_000_000_000, 20_000_000)
  }

  /// Calls `create` with each timer's nanoseconds from now.
  public mutating func create(_ create: (Int64) -> Void) {
    var random = RandomDates()
    begin = race_now()
    for _ in 0..<count {
      let delay = random.within(span)
      last = max(last, delay)
      create(delay)
    }
    created = race_now()
  }

  /// Reports the results after the last timer has fired at `end`.
  ///
  /// - Parameter client: The client's own work for each timer, without the loop.
  public func report(end: Int64, client: ((Int64) -> Void)? = nil) {
    let each = Double(race_cpu() - cpu) / Double(count)
    race_report("processor time per timer", each, "ns")
    if let client {
      var random = RandomDates()
      let begin = race_cpu()
      for _ in 0..<count { client(random.within(span)) }
      race_report("processor time per timer, net", each - Double(race_cpu() - begin) / Double(count), "ns")
    }
    race_report("creation", Double(created - begin) / Double(count), "ns")
    race_report("the last is late", Double(end - begin - last) / 1e6, "ms")
  }
}
