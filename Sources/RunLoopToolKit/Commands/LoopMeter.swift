// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// What `runloop top` shows of one loop: a value that is fed with records.
struct LoopMeter {
  /// How long something counts: for shares and rates, and for delays and the table by code.
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
  /// How many call-outs there had been at several times.
  private var samples: [(time: Int64, count: UInt64)] = []
  /// From when on records are there.
  private let since: Int64

  init(since: Int64) { self.since = since }

  /// Takes a record whose item has ended.
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

  /// Notes how many call-outs there have been, of which not every record is seen.
  mutating func addSample(_ count: UInt64, at now: Int64) { samples.append((now, count)) }

  /// Forgets what no longer counts.
  mutating func forget(before now: Int64) {
    let first = calls.firstIndex { $0.end > now - Self.long } ?? calls.count
    // Mostly in order of their ends; a nested one may stay a little longer.
    if first > 0 { calls.removeFirst(first) }
    if calls.count > 50_000 { calls.removeFirst(calls.count - 50_000) }
    let firstSleep = sleeps.firstIndex { $0.end > now - Self.short } ?? sleeps.count
    if firstSleep > 0 { sleeps.removeFirst(firstSleep) }
    // One that is older stays, so that there is always something to compare with.
    let firstSample = samples.lastIndex { $0.time <= now - Self.short } ?? 0
    if firstSample > 0 { samples.removeFirst(firstSample) }
  }

  /// The share of the last second in which the loop did not sleep.
  ///
  /// - Parameter asleepSince: When the sleep began that goes on; nil: the loop does not sleep.
  func busy(at now: Int64, asleepSince: Int64?) -> Double {
    let begin = max(now - Self.short, since)
    guard now > begin else { return 0 }
    var asleep = sleeps.reduce(Int64(0)) { $0 + max(0, min($1.end, now) - max($1.begin, begin)) }
    if let asleepSince { asleep += max(0, now - max(asleepSince, begin)) }
    return max(0, 1 - Double(asleep) / Double(now - begin))
  }

  /// How many call-outs there were in the last second.
  var rate: Int {
    guard let first = samples.first, let last = samples.last, last.time > first.time, last.count >= first.count else {
      return 0
    }
    let rate = Double(last.count - first.count) * 1e9 / Double(max(last.time - first.time, Self.short))
    // The counts are the process's own claim.
    return Int(min(rate, 1e15))
  }

  /// What only one of a hundred pieces of work has waited longer than.
  var delay99: Int64? {
    let delays = calls.compactMap(\.delay).sorted()
    return delays.isEmpty ? nil : delays[min(delays.count - 1, delays.count * 99 / 100)]
  }

  /// What was called, by code.
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
      // The times are the process's own claim: an end may be before its beginning, or centuries later.
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

  /// The place that stands for code that has no name of its own: any of those that it was posted from.
  func site(of site: Site) -> UInt64 {
    calls.last { $0.kind == site.kind && $0.code == site.code && $0.site != 0 }?.site ?? site.site
  }

  /// Whether nothing in it changes any more while the loop sleeps.
  func isSettled(at now: Int64) -> Bool {
    calls.isEmpty && sleeps.isEmpty && rate == 0 && now - since > Self.short
  }
}
