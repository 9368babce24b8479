// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The statistics of a loop in `runloop top`, computed from its records.
struct LoopMeter {
  /// The time spans for shares and rates, and for delays and the table by code.
  static let short: Int64 = 1_000_000_000
  static let long: Int64 = 10_000_000_000

  private struct Call {
    let begin: Int64
    let end: Int64
    let kind: UInt8
    let code: UInt64
    let site: UInt64
    let delay: Int64?
  }

  private var calls: [Call] = []
  private var sleeps: [(begin: Int64, end: Int64)] = []
  /// The number of call-outs at several times.
  private var samples: [(time: Int64, count: UInt64)] = []
  /// The time of the first records.
  private let since: Int64

  init(since: Int64) { self.since = since }

  /// Adds a completed record.
  mutating func add(_ record: crl_record, _ post: crl_post?, _ clock: RecordClock) {
    let (begin, end) = (clock.nanoseconds(record.begin), clock.nanoseconds(record.end))
    if UInt32(record.kind) == CRL_KIND_SLEEP.rawValue { return sleeps.append((begin, end)) }
    guard UInt32(record.kind) < CRL_KIND_HOST.rawValue else { return }
    let isCaused = Int32(record.flags) & Int32(CRL_RECORD_CAUSED) != 0
    let posted = post?.posted ?? (isCaused && UInt32(record.kind) != CRL_KIND_TIMER.rawValue ? record.posted : nil)
    calls.append(
      Call(
        begin: begin, end: end, kind: record.kind, code: record.code,
        site: post.map { $0.site & ~(1 << 63) } ?? (isCaused ? record.item : 0),
        delay: posted.map { max(0, begin - clock.nanoseconds($0)) }))
  }

  /// Adds a sample of the number of call-outs, because not every record is seen.
  mutating func addSample(_ count: UInt64, at now: Int64) { samples.append((now, count)) }

  /// Discards data that is too old to count.
  mutating func forget(before now: Int64) {
    let first = calls.firstIndex { $0.end > now - Self.long } ?? calls.count
    // Usually ordered by their ends; a nested one may stay slightly longer.
    if first > 0 { calls.removeFirst(first) }
    if calls.count > 50_000 { calls.removeFirst(calls.count - 50_000) }
    let firstSleep = sleeps.firstIndex { $0.end > now - Self.short } ?? sleeps.count
    if firstSleep > 0 { sleeps.removeFirst(firstSleep) }
    // Keeps one older sample to compare with.
    let firstSample = samples.lastIndex { $0.time <= now - Self.short } ?? 0
    if firstSample > 0 { samples.removeFirst(firstSample) }
  }

  /// The share of the last second in which the loop did not sleep.
  ///
  /// - Parameter asleepSince: When the current sleep began, or nil if the loop does not sleep.
  func busy(at now: Int64, asleepSince: Int64?) -> Double {
    let begin = max(now - Self.short, since)
    guard now > begin else { return 0 }
    var asleep = sleeps.reduce(Int64(0)) { $0 + max(0, min($1.end, now) - max($1.begin, begin)) }
    if let asleepSince { asleep += max(0, now - max(asleepSince, begin)) }
    return max(0, 1 - Double(asleep) / Double(now - begin))
  }

  /// The number of call-outs in the last second.
  var rate: Int {
    guard let first = samples.first, let last = samples.last, last.time > first.time, last.count >= first.count else {
      return 0
    }
    let rate = Double(last.count - first.count) * 1e9 / Double(max(last.time - first.time, Self.short))
    // The counts are untrusted data.
    return Int(min(rate, 1e15))
  }

  /// The 99th percentile of the waiting times of work.
  var delay99: Int64? {
    let delays = calls.compactMap(\.delay).sorted()
    return delays.isEmpty ? nil : delays[min(delays.count - 1, delays.count * 99 / 100)]
  }

  /// A function and kind of call-out in the table by code.
  struct Site: Hashable {
    let kind: UInt8
    let code: UInt64
    let site: UInt64
  }

  struct Sum {
    var count = 0
    var total: Int64 = 0
    var longest: Int64 = 0
  }

  func sums() -> [(site: Site, sum: Sum)] {
    var sums: [Site: Sum] = [:]
    for call in calls {
      let site = Site(kind: call.kind, code: call.code, site: call.code == 0 ? call.site : 0)
      // The times are untrusted data: an end may precede its beginning or be centuries later.
      let took = max(0, call.end - call.begin)
      var sum = sums[site, default: Sum()]
      let (total, isOver) = sum.total.addingReportingOverflow(took)
      sum.count += 1
      sum.total = isOver ? .max : total
      sum.longest = max(sum.longest, took)
      sums[site] = sum
    }
    return sums.sorted { ($0.value.total, $1.key.code) > ($1.value.total, $0.key.code) }.map { ($0.key, $0.value) }
  }

  /// A place that posted the code, for code without a name.
  func site(of site: Site) -> UInt64 {
    calls.last { $0.kind == site.kind && $0.code == site.code && $0.site != 0 }?.site ?? site.site
  }

  /// Whether nothing will change while the loop sleeps.
  func isSettled(at now: Int64) -> Bool {
    calls.isEmpty && sleeps.isEmpty && rate == 0 && now - since > Self.short
  }
}
