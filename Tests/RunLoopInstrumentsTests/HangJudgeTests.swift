// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments
import Testing

/// A judge on virtual time in milliseconds, with its verdicts as a log.
private struct Court {
  private var judge: HangJudge
  private(set) var log: [String] = []
  private(set) var now: Int64 = 0

  init(threshold: Int64 = 400, backlog: Int64? = nil) {
    judge = HangJudge(
      HangJudge.Settings(threshold: threshold * 1_000_000, backlog: backlog.map { $0 * 1_000_000 }))
  }

  /// The milliseconds until the judge wants to look again, or nil if it waits for an event.
  var pause: Int64? { judge.nextLook.map { $0 / 1_000_000 - now } }

  mutating func look(at time: Int64, _ looks: HangJudge.Look...) {
    now = time
    for verdict in judge.judge(looks, at: time * 1_000_000) {
      switch verdict {
      case .sample(let slot): log.append("\(time) sample \(slot)")
      case .found(let slot, let since): log.append("\(time) hang \(slot) since \(since / 1_000_000)")
      case .doubtful(let slot, _, let since): log.append("\(time) doubt \(slot) since \(since / 1_000_000)")
      case .backlog(let slot, let since): log.append("\(time) backlog \(slot) since \(since / 1_000_000)")
      case .over(let slot, let isBacklog, _): log.append("\(time) \(isBacklog ? "backlog" : "hang") \(slot) over")
      }
    }
  }

  /// Makes the judge look whenever it wants to, until a given time.
  mutating func follow(until end: Int64, _ look: (Int64) -> HangJudge.Look) {
    while let pause, now + pause <= end { self.look(at: now + pause, look(now + pause)) }
  }

  mutating func resume(at time: Int64) {
    now = time
    judge.resume(at: time * 1_000_000)
  }
}

private func open(_ number: UInt64, began: Int64? = nil, excused: Bool = false, slot: Int = 0) -> HangJudge.Look {
  HangJudge.Look(
    slot: slot, callOut: .init(number: number, began: began.map { $0 * 1_000_000 }), isExcused: excused)
}

private let asleep = HangJudge.Look(slot: 0, isAsleep: true)
private let between = HangJudge.Look(slot: 0)

@Suite("The judgement of hangs") struct HangJudgeTests {
  @Test("the time in which a runnable thread had no processor does not turn its call-out into a hang")
  func starved() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 200) { _ in open(1, began: 0) }
    court.follow(until: 450) { _ in
      var look = open(1, began: 0)
      look.starved = 50_000_000
      return look
    }
    court.follow(until: 700) { _ in open(1, began: 0) }
    #expect(court.log.filter { !$0.contains("sample") } == ["650 hang 0 since 0"], "\(court.log)")
  }

  @Test(
    "starvation is the unused time of a runnable thread, and the kernel's figure for a blocked one")
  func starvation() {
    let first = ThreadClock(running: 10, runnable: 5, time: 100)
    let last = ThreadClock(running: 30, runnable: 15, time: 200)
    #expect(last.starvation(since: first, isRunnable: true) == 80)
    #expect(last.starvation(since: first, isRunnable: false) == 10)
    #expect(ThreadClock(running: 110, runnable: 5, time: 200).starvation(since: first, isRunnable: true) == 0)
  }

  @Test("a call-out unchanged for the threshold is a hang, and is sampled from half of that on")
  func hang() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 500) { _ in open(1, began: 0) }
    court.look(at: 550, asleep)
    #expect(
      court.log == [
        "200 sample 0", "250 sample 0", "300 sample 0", "350 sample 0", "400 sample 0", "400 hang 0 since 0",
        "450 sample 0", "550 hang 0 over",
      ])
  }

  @Test("the longer a hang lasts, the less often it is sampled, down to once a second")
  func rarer() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 10_000) { _ in open(1, began: 0) }
    let times = court.log.filter { $0.hasSuffix("sample 0") }.compactMap { Int($0.prefix { $0 != " " }) }
    #expect(times.drop { $0 < 450 } == [450, 550, 750, 1150, 1950, 2950, 3950, 4950, 5950, 6950, 7950, 8950, 9950])
  }

  @Test("a call-out that ends before half of the threshold leaves no trace")
  func short() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 150) { _ in open(1, began: 0) }
    court.look(at: 190, open(2, began: 180))
    court.look(at: 200, asleep)
    #expect(court.log.isEmpty)
  }

  @Test("a call-out that ended between two looks is a hang if its record says that it lasted long enough")
  func doubtful() {
    var court = Court()
    court.look(at: 0, open(7, began: 0))
    court.follow(until: 390) { _ in open(7, began: 0) }
    court.look(at: 410, between)
    #expect(court.log.last == "410 doubt 0 since 0")
    #expect(!court.log.contains { $0.contains("hang") })
  }

  @Test("a loop that runs one short call-out after another is busy, not hung")
  func busy() {
    var court = Court()
    court.look(at: 0, open(0, began: 0))
    court.follow(until: 5000) { open(UInt64($0 / 10), began: $0 - 5) }
    #expect(court.log.isEmpty)
  }

  @Test("a nested run that sleeps resets the time of the call-out around it, which starts again afterwards")
  func nested() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.look(at: 100, open(1, began: 0))
    // The nested run sleeps, and its sleep has a number.
    court.look(at: 200, asleep)
    court.look(at: 300, asleep)
    // The call-out continues, with the number of the latest entry.
    court.look(at: 350, open(3, began: 340))
    court.follow(until: 530) { _ in open(3, began: 340) }
    court.look(at: 538, asleep)
    #expect(court.log.isEmpty)
    court.look(at: 600, open(9, began: 600))
    court.follow(until: 1000) { _ in open(9, began: 600) }
    #expect(court.log.last == "1000 hang 0 since 600")
  }

  @Test("a call-out with unknown begin counts from the second look at it")
  func unknownBegin() {
    var court = Court()
    court.look(at: 0, asleep)
    court.look(at: 100, open(1))
    court.follow(until: 600) { _ in open(1) }
    #expect(court.log.filter { $0.contains("hang") } == ["500 hang 0 since 50"])
  }

  @Test("a look late by half a period counts as if it were on time, because the loops were late too")
  func late() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    // Wanted at 100 ms, and 90 ms late.
    court.look(at: 190, open(1, began: 0))
    #expect(court.log.isEmpty)
    court.look(at: 290, open(1, began: 0))
    #expect(court.log == ["290 sample 0"])
  }

  @Test("if the whole process was stopped for longer than a hang, the call-out's time starts again")
  func stopped() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 350) { _ in open(1, began: 0) }
    court.look(at: 5000, open(1, began: 0))
    #expect(!court.log.contains { $0.contains("hang") })
    court.follow(until: 5300) { _ in open(1, began: 0) }
    #expect(!court.log.contains { $0.contains("hang") })
    court.follow(until: 5400) { _ in open(1, began: 0) }
    #expect(court.log.last == "5400 hang 0 since 0")
  }

  @Test("a thread that is stopped, debugged or in an expected long call does not hang")
  func excused() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 350) { _ in open(1, began: 0) }
    court.follow(until: 3000) { _ in open(1, began: 0, excused: true) }
    #expect(!court.log.contains { $0.contains("hang") })
    // It is not taken for a long call-out when it ends either.
    court.look(at: 3010, asleep)
    #expect(!court.log.contains { $0.contains("doubt") })
  }

  @Test("a hang interrupted by a debugger continues, and ends once")
  func stoppedHang() {
    var court = Court()
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 450) { _ in open(1, began: 0) }
    court.follow(until: 900) { _ in open(1, began: 0, excused: true) }
    court.look(at: 1000, asleep)
    #expect(court.log.filter { $0.contains("hang") } == ["400 hang 0 since 0", "1000 hang 0 over"])
  }

  @Test("hangs are detected separately for each loop, and end with the loop")
  func several() {
    var court = Court()
    for time in stride(from: Int64(0), through: 400, by: 50) {
      court.look(at: time, open(1, began: 0), open(UInt64(time), began: time, slot: 1))
    }
    court.look(at: 450, open(500, began: 450, slot: 1))
    #expect(court.log.filter { $0.contains("hang") } == ["400 hang 0 since 0", "450 hang 0 over"])
  }

  @Test("while all loops sleep, the judge stops looking after the second look")
  func parks() {
    var court = Court()
    court.look(at: 0, asleep)
    #expect(court.pause == 100)
    court.look(at: 100, asleep)
    #expect(court.pause == nil)
    court.resume(at: 60_000)
    #expect(court.pause == 0)
    court.look(at: 60_000, open(5))
    court.follow(until: 60_399) { _ in open(5) }
    #expect(!court.log.contains { $0.contains("hang") })
    court.follow(until: 60_400) { _ in open(5) }
    #expect(court.log.last == "60400 hang 0 since 60000")
  }

  @Test("another loop that takes over a slot starts afresh")
  func generations() {
    var court = Court()
    var other = open(1, began: 0)
    other.generation = 2
    court.look(at: 0, open(1, began: 0))
    court.follow(until: 400) { _ in open(1, began: 0) }
    court.look(at: 450, other)
    #expect(court.log.filter { $0.contains("hang") } == ["400 hang 0 since 0", "450 hang 0 over"])
  }
}

@Suite("The judgement of backlogs") struct BacklogJudgeTests {
  private func working(_ number: UInt64, posted: UInt64, served: UInt64) -> HangJudge.Look {
    var look = open(number)
    look.posted = posted
    look.served = served
    return look
  }

  @Test("a long-waiting post is a backlog without a long call-out, until posts wait half as long")
  func backlog() {
    var court = Court(backlog: 800)
    court.look(at: 0, asleep)
    // A hundred posts at once. One is served every 20 ms.
    for time in stride(from: Int64(20), through: 2100, by: 20) {
      let served = UInt64(min(100, time / 20))
      if served < 100 {
        court.look(at: time, working(UInt64(time), posted: 100, served: served))
      } else {
        court.look(at: time, asleep)
      }
    }
    #expect(court.log == ["820 sample 0", "820 backlog 0 since 20", "2000 backlog 0 over"])
  }

  @Test("a queue that moves is no backlog, however long it is")
  func steady() {
    var court = Court(backlog: 800)
    for time in stride(from: Int64(0), through: 10_000, by: 20) {
      court.look(at: time, working(UInt64(time), posted: UInt64(time / 20) + 10, served: UInt64(time / 20)))
    }
    #expect(court.log.isEmpty)
  }

  @Test("posts that wait because of a hang belong to that hang")
  func behindHang() {
    var court = Court(backlog: 800)
    court.look(at: 0, working(1, posted: 50, served: 0))
    court.follow(until: 2000) { _ in working(1, posted: 50, served: 0) }
    for time in stride(from: Int64(2010), through: 2400, by: 10) {
      court.look(at: time, working(UInt64(time), posted: 50, served: UInt64(time - 2000) / 10))
    }
    #expect(!court.log.contains { $0.contains("backlog") })
  }

  @Test("a post for a mode that does not run is no backlog")
  func otherMode() {
    var court = Court(backlog: 800)
    var sleeping = asleep
    (sleeping.posted, sleeping.served) = (11, 10)
    court.look(at: 0, sleeping)
    for time in stride(from: Int64(20), through: 3000, by: 20) {
      court.look(at: time, working(UInt64(time), posted: 11, served: 10))
    }
    #expect(court.log.isEmpty)
  }
}
