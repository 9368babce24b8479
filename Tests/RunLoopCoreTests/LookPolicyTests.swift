// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Looks before a sleep: whether and for how long")
struct LookPolicyTests {
  /// A wait, as reported to the policy.
  enum Wait {
    /// The thread was woken a number of microseconds after the wait began, and ran after a latency.
    case woken(Int64, latency: Int64)
    /// A descriptor became ready about this many microseconds after the wait began.
    case event(Int64)
    case timedOut
    /// A spin that was ended by an event.
    case found
    /// An unsuccessful spin, followed by a long sleep.
    case vain
  }

  /// The maximum length of the next spin in microseconds, after several waits.
  private static func length(
    after waits: [Wait], limit: Int64 = 50_000, deadline: Tick = .never, _ policy: inout LookPolicy
  ) -> Int64 {
    for wait in waits {
      switch wait {
      case .woken(let idle, let latency):
        policy.noteSleep(idle: idle * 1000, latency: latency * 1000, limit: limit)
      case .event(let idle): policy.noteSleep(idle: idle * 1000, latency: nil, limit: limit)
      case .timedOut: policy.noteSleep(idle: nil, latency: nil, limit: limit)
      case .found: policy.noteSuccess()
      case .vain:
        let length = policy.length(at: .distantPast, until: .never, limit: limit)
        policy.noteFailure(duration: length, length: length, at: Tick(nanoseconds: 0))
        policy.noteSleep(idle: 1_000_000, latency: nil, limit: limit)
      }
    }
    return policy.length(at: Tick(nanoseconds: 0), until: deadline, limit: limit) / 1000
  }

  private static func length(after waits: [Wait], limit: Int64 = 50_000, deadline: Tick = .never) -> Int64 {
    var policy = LookPolicy()
    return length(after: waits, limit: limit, deadline: deadline, &policy)
  }

  private static func times(_ count: Int, _ waits: Wait...) -> [Wait] { (0..<count).flatMap { _ in waits } }

  static let table: [(name: String, waits: [Wait], microseconds: Int64)] = [
    ("nothing is known", [], 0),
    ("answers after 15 µs, five times", times(5, .woken(15, latency: 20)), 0),
    (
      "answers after 15 µs, six times: a look may last as long as a sleep and a wake cost",
      times(6, .woken(15, latency: 20)), 30
    ),
    ("answers after 15 µs where a wake costs 3 µs: a look would not do", times(20, .woken(15, latency: 3)), 0),
    ("answers after 3 µs where a wake costs 3 µs", times(20, .woken(3, latency: 3)), 4),
    (
      "a wake that costs a millisecond, beside busy neighbours: 50 µs at most", times(20, .woken(15, latency: 1000)), 50
    ),
    ("answers after 60 µs", times(20, .woken(60, latency: 1000)), 0),
    ("an idle loop that is woken once a second", times(100, .woken(1_000_000, latency: 60)), 0),
    ("a hundred events a second", times(100, .woken(10_000, latency: 40)), 0),
    ("a timer each millisecond", times(100, .timedOut), 0),
    ("a timer, and an answer between two dates", times(100, .timedOut, .woken(5, latency: 40)), 0),
    ("descriptors that become ready soon, and nobody knows what a wake costs", times(20, .event(1)), 0),
    ("descriptors that become ready soon", [.woken(90, latency: 40)] + times(8, .event(5)), 60 - 10),
    ("descriptors that become ready later", [.woken(90, latency: 40)] + times(8, .event(90)), 0),
    ("one long wait among short ones", times(8, .woken(5, latency: 20)) + [.woken(5000, latency: 20)], 0),
    ("two short ones behind it", times(8, .woken(5, latency: 20)) + [.timedOut] + times(2, .woken(5, latency: 20)), 30),
    ("looks that find something", times(8, .woken(5, latency: 20)) + times(50, .found), 30),
    ("a look in vain", times(8, .woken(5, latency: 20)) + [.vain], 0),
    (
      "and two short waits: it waits for one more",
      times(8, .woken(5, latency: 20)) + [.vain] + times(1, .woken(5, latency: 20)), 0
    ),
    ("and some more of them", times(8, .woken(5, latency: 20)) + [.vain] + times(4, .woken(5, latency: 20)), 30),
  ]

  @Test("the length of a look depends on the recent waits", arguments: 0..<table.count)
  func decision(row: Int) {
    let (name, waits, microseconds) = LookPolicyTests.table[row]
    #expect(LookPolicyTests.length(after: waits) == microseconds, "\(name)")
  }

  @Test("a spin lasts no longer than allowed, and no longer than until the next date")
  func bounds() {
    let waits = LookPolicyTests.times(8, .woken(2, latency: 100))
    #expect(LookPolicyTests.length(after: waits) == 50)
    #expect(LookPolicyTests.length(after: waits, limit: 10_000) == 10)
    #expect(LookPolicyTests.length(after: waits, deadline: Tick(nanoseconds: 7_000)) == 7)
    #expect(LookPolicyTests.length(after: waits, deadline: Tick(nanoseconds: 0)) == 0)
    #expect(LookPolicyTests.length(after: waits, deadline: Tick(nanoseconds: -5)) == 0)
  }

  @Test("consecutive unsuccessful spins become rarer, and a successful one reverses a step")
  func backOff() {
    var policy = LookPolicy()
    _ = LookPolicyTests.length(after: LookPolicyTests.times(8, .woken(5, latency: 20)), &policy)
    // The number of short waits until the policy spins again.
    func waitsUntilLook() -> Int {
      var waits = 0
      while LookPolicyTests.length(after: [], &policy) == 0 {
        _ = LookPolicyTests.length(after: [.woken(5, latency: 20)], &policy)
        waits += 1
      }
      return waits
    }
    var pauses: [Int] = []
    for _ in 0..<12 {
      _ = LookPolicyTests.length(after: [.vain], &policy)
      pauses.append(waitsUntilLook())
    }
    #expect(pauses == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024])
    _ = LookPolicyTests.length(after: [.found, .found, .vain], &policy)
    #expect(waitsUntilLook() == 512)
  }

  @Test("a spin that lost its processor is the last for a second")
  func lostProcessor() {
    var policy = LookPolicy()
    let waits = LookPolicyTests.times(8, .woken(5, latency: 20))
    _ = LookPolicyTests.length(after: waits, &policy)
    policy.noteFailure(duration: 4_000_000, length: 30_000, at: Tick(nanoseconds: 100))
    _ = LookPolicyTests.length(after: waits, &policy)
    #expect(policy.length(at: Tick(nanoseconds: 1_000_000_099), until: .never, limit: 50_000) == 0)
    #expect(policy.length(at: Tick(nanoseconds: 1_000_000_100), until: .never, limit: 50_000) == 30_000)
  }

  @Test("a wait setting reads back as it was set, and is clamped")
  func setting() {
    #expect(RunLoop.waiting == .adaptive)
    #expect(RunLoop.Waiting.adaptive.limit == 50_000 && !RunLoop.Waiting.adaptive.yields)
    #expect(RunLoop.Waiting.adaptive(atMost: .seconds(1)) == .adaptive)
    #expect(RunLoop.Waiting.adaptive(atMost: .nanoseconds(999)) == .sleep)
    #expect(RunLoop.Waiting.adaptive(atMost: .seconds(-1), yields: true) == .sleep)
    let yielding = RunLoop.Waiting.adaptive(atMost: .microseconds(20), yields: true)
    #expect(yielding.limit == 20_000 && yielding.yields && yielding != .adaptive(atMost: .microseconds(20)))
  }
}

@Suite("A look depends on the processors of the threads that end the waits")
struct LookMannerTests {
  /// How a thread on processor 0 looks after threads on `wakers` ended its waits.
  private static func manner(_ place: LookPlace, wokenFrom wakers: [Int32], yields: Bool = false) -> Looker.Manner {
    var looker = Looker(LookPolicy(), place)
    for waker in wakers { looker.noteWaker(waker) }
    return looker.manner(.adaptive(yields: yields), on: 0)
  }

  static let table:
    [(name: String, place: LookPlace, wakers: [Int32], manner: Looker.Manner, yielding: Looker.Manner)] =
      [
        ("nothing is known, and there are several processors", .free, [], .spins, .spins),
        ("nothing is known, and there is one", .pinned, [], .none, .yields),
        ("a descriptor ended the waits", .pinned, [-1, -1], .none, .yields),
        ("another processor, once", .pinned, [1], .spins, .spins),
        ("another processor", .pinned, [1, 1], .spins, .spins),
        ("two other processors", .free, [1, 2, 3], .spins, .spins),
        ("the same processor", .free, [0, 0], .none, .none),
        ("the same processor, of a thread that has only that", .pinned, [0, 0], .none, .yields),
        ("the same one last", .free, [1, 1, 0], .none, .none),
        ("the same one before the last", .free, [0, 1], .none, .none),
        ("the same one before that", .free, [0, 1, 1], .spins, .spins),
        ("an unknown end in between", .free, [1, 1, -1], .spins, .spins),
        ("no time for two processors", .alone, [1, 1], .none, .yields),
        ("no look allowed", .none, [1, 1], .none, .none),
      ]

  @Test("spinning needs another processor, and yielding needs one for both", arguments: 0..<table.count)
  func manner(row: Int) {
    let (name, place, wakers, manner, yielding) = LookMannerTests.table[row]
    #expect(LookMannerTests.manner(place, wokenFrom: wakers) == manner, "\(name)")
    #expect(LookMannerTests.manner(place, wokenFrom: wakers, yields: true) == yielding, "\(name)")
  }

  @Test("a thread that wakes a sleeping loop leaves the number of its processor")
  func waker() {
    let loop = Box<RunLoop?>(nil)
    let latch = Latch()
    let processor = Box<Int32>(-1)
    let thread = startThread {
      let own = RunLoop.current
      own.keepAlive()
      own.perform {
        loop.value = own
        latch.open()
      }
      own.runUntilStopped()
    }
    latch.wait()
    guard let loop = loop.value else { return }
    var processors = [Int32](repeating: 0, count: 1024)
    let count = Int(crl_thread_get_affinity(0, &processors, 1024))
    for own in processors.prefix(max(0, min(count, 2))) {
      waitUntil { loop.word.hasSleeper && System.isAsleep(thread: loop.threadID) }
      let isOver = Latch()
      let poster = startThread { () -> Bool in
        let isPinned = crl_thread_set_affinity(0, [own], 1) == 0
        loop.perform {
          processor.value = loop.looker.wakers.last
          isOver.open()
        }
        return isPinned
      }
      isOver.wait()
      if poster.result() { #expect(processor.value == own) }
    }
    loop.stop()
    thread.result()
  }
}

@Suite("The time that control groups allow a process")
struct ProcessorQuotaTests {
  static let table: [(name: String, files: [String: String], processors: Double?)] = [
    ("nothing is known", [:], nil),
    ("no limit", ["/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000\n"], nil),
    ("half a processor", ["/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "50000 100000\n"], 0.5),
    (
      "a limit further up",
      [
        "/proc/self/cgroup": "0::/a/b/c\n", "/sys/fs/cgroup/a/b/c/cpu.max": "300000 100000\n",
        "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
      ], 1.5
    ),
    ("in a container", ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "200000 100000\n"], 2),
    (
      "the old hierarchy",
      [
        "/proc/self/cgroup": "5:cpu,cpuacct:/x\n3:memory:/x\n", "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "25000\n",
        "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "50000\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
      ], 0.5
    ),
    ("what is no number", ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "much 100000\n"], nil),
    ("a line that is none", ["/proc/self/cgroup": "cpu\n", "/sys/fs/cgroup/cpu.max": "1 2\n"], nil),
  ]

  @Test("the processor limit is the least of all enclosing control groups", arguments: 0..<table.count)
  func quota(row: Int) {
    let (name, files, processors) = ProcessorQuotaTests.table[row]
    #expect(ProcessorQuota.processorsAllowed { files[$0] } == processors, "\(name)")
  }

  @Test("the policy allows threads up to the processors and time, and at least one", arguments: 0..<table.count)
  func threads(row: Int) {
    let (name, files, processors) = ProcessorQuotaTests.table[row]
    let allowed = processors.map { Int($0.rounded(.up)) } ?? .max
    for count in [1, 2, 8] {
      #expect(ProcessorQuota.usableProcessors(of: count) { files[$0] } == min(count, allowed), "\(name), \(count)")
    }
    #expect(ProcessorQuota.usableProcessors(of: 0) { files[$0] } == 1)
  }
}
