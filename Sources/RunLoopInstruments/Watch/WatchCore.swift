// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import Synchronization

/// The state and body of a watch's thread.
final class WatchCore: Sendable {
  private let configuration: HangWatch.Configuration
  private let report: @Sendable (HangReport) -> Void
  private let holder: LevelHolder
  /// A futex on which the thread sleeps between observations, set to stop it.
  private let stopped = Atomic<UInt32>(0)

  init(_ configuration: HangWatch.Configuration, _ report: @escaping @Sendable (HangReport) -> Void) {
    self.configuration = configuration
    self.report = report
    holder = Instruments.hold(max(configuration.level, .watch))
  }

  /// Starts the thread; if that fails, releases the level and returns false.
  func start() -> Bool {
    // Installs the handlers for forks.
    _ = ForkGeneration.current
    let context = Unmanaged.passRetained(self)
    let answer = crl_thread_start(
      { context in
        if let context { Unmanaged<WatchCore>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context.toOpaque())
    guard answer != 0 else { return true }
    context.release()
    holder.release()
    return false
  }

  func stop() {
    holder.release()
    stopped.store(1, ordering: .sequentiallyConsistent)
    stopped.futexWake(.max)
    crl_watcher_wake()
  }

  private var isStopped: Bool { stopped.load(ordering: .sequentiallyConsistent) != 0 }

  private func run() {
    // Not while the last reference is released, which may run the program's code.
    crl_fork_prevent()
    defer { crl_fork_allow() }
    crl_thread_set_kernel_name("runloop-watch")
    var limit = ReportLimit(perMinute: configuration.maximumPerMinute)
    var scout: HangScout?
    while !isStopped {
      if scout == nil { scout = makeScout() }
      guard let scout else {
        // The first loop wakes the watch when it first runs.
        park { OwnFaces() != nil }
        continue
      }
      let now = crl_monotonic_nanoseconds()
      for finding in scout.look(at: now) {
        if isStopped { return }
        guard let report = limit.admit(finding, at: now) else { continue }
        crl_fork_allow()
        self.report(report)
        crl_fork_prevent()
      }
      if let next = scout.nextLook {
        sleep(until: next)
      } else {
        park { !scout.isQuiet }
        scout.resume(at: crl_monotonic_nanoseconds())
      }
    }
  }

  private func makeScout() -> HangScout? {
    guard let faces = OwnFaces() else { return nil }
    let loops = configuration.loops?.map { UInt64(UInt(bitPattern: Unmanaged.passUnretained($0).toOpaque())) }
    let settings = HangJudge.Settings(
      threshold: max(1_000_000, nanoseconds(configuration.threshold)),
      backlog: configuration.backlog.map { max(1_000_000, nanoseconds($0)) })
    return HangScout(process: getpid(), faces: faces, settings: settings, samples: configuration.sampling) { _, face in
      loops.map { $0.contains(face.loop) } ?? true
    }
  }

  private func nanoseconds(_ duration: Duration) -> Int64 { min(.max / 4, Int64(saturating: duration)) }

  private func sleep(until time: Int64) {
    stopped.futexWaitAllowingForks(until: time)
  }

  /// Sleeps until a loop becomes active.
  ///
  /// A loop that becomes active publishes that it does not sleep and then reads the watcher's word, without ordering
  /// between the two. The loops are therefore checked once more, some time after the word was set, when all earlier
  /// activity is visible.
  private func park(unless isBusy: () -> Bool) {
    let parked = crl_watcher_park()
    sleep(until: crl_monotonic_nanoseconds() + 20_000_000)
    // If another watch parks between the check and the sleep, after a stop has reset the word, this checks again.
    var isOther = true
    while isOther {
      let turn = crl_watcher_turn(parked)
      guard turn != 0, !isStopped, !isBusy() else { return }
      isOther = crl_fork_allow_during_wait(parked, turn, nil) == -EAGAIN
    }
  }
}

extension Atomic where Value == UInt32 {
  /// Sleeps while this word is zero, until a time on the monotonic clock in nanoseconds.
  ///
  /// For threads that prevent forks otherwise.
  borrowing func futexWaitAllowingForks(until time: Int64) {
    var deadline = timespec(nanoseconds: Swift.max(0, time))
    withUnsafePointer(to: self) { pointer in
      _ = crl_fork_allow_during_wait(UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self), 0, &deadline)
    }
  }
}

/// Limits the number of hangs reported per minute.
struct ReportLimit: Sendable {
  private let perMinute: Int
  private var times: [Int64] = []
  private var leftOut = 0
  /// The hangs whose beginning was reported.
  private var admitted: Set<Key> = []

  private struct Key: Hashable {
    let loop: UInt64
    let begin: Int64
    let isBacklog: Bool
  }

  init(perMinute: Int) { self.perMinute = perMinute }

  /// Returns the report to make for a finding, or nil.
  ///
  /// If the beginning of a hang was reported, so is its end.
  mutating func admit(_ finding: HangScout.Finding, at now: Int64) -> HangReport? {
    var report = finding.report
    let key = Key(loop: report.loop, begin: report.begin, isBacklog: report.isBacklog)
    switch finding {
    case .ended:
      return admitted.remove(key) == nil ? nil : report
    case .began:
      times.removeAll { now - $0 >= 60_000_000_000 }
      guard times.count < perMinute else {
        leftOut += 1
        return nil
      }
      times.append(now)
      admitted.insert(key)
      report.leftOut = leftOut
      leftOut = 0
      return report
    }
  }
}
