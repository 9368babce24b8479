// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The schedule and cancel call-outs of a source are balanced", .timeLimit(.minutes(20)))
struct SourceBalanceTests {
  /// Logs `+mode` and `-mode`; calls a body at the beginning of each `schedule`, whose end is logged as `)`.
  private func source(
    _ log: Log, cancelling: @escaping @Sendable (RunLoop, RunLoop.Mode) -> Void = { _, _ in },
    scheduling: @escaping @Sendable (RunLoop.Source, RunLoop, RunLoop.Mode) -> Void
  ) -> RunLoop.Source {
    let box = Box(WeakBox<RunLoop.Source>(nil))
    let made = RunLoop.Source(
      schedule: { loop, mode in
        log.write("+\(short(mode))(")
        if let source = box.value.object { scheduling(source, loop, mode) }
        log.write(")")
      },
      cancel: { loop, mode in
        log.write("-\(short(mode))")
        cancelling(loop, mode)
      }, perform: {})
    box.value = WeakBox(made)
    return made
  }

  @Test(
    "a source that is invalidated in its schedule is cancelled after it, and only where it was scheduled",
    .rule(.r72, .r73))
  func invalidatedInSchedule() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = source(log) { source, _, _ in source.invalidate() }
      loop.add(source, forMode: .common)
      log.write("\(source.isValid)")
    }
    #expect(log == "+default( ) -default false")
  }

  @Test(
    "a source that is removed in its schedule is cancelled after it, and only where it was scheduled", .rule(.r72, .r73)
  )
  func removedInSchedule() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = source(log) { source, loop, _ in loop.remove(source, forMode: .common) }
      loop.add(source, forMode: .common)
      log.write("\(loop.contains(source, forMode: "a"))")
      source.invalidate()
    }
    #expect(log == "+default( ) -default false")
  }

  @Test(
    "a source that is removed and added again in its schedule is cancelled and scheduled after it", .rule(.r72, .r73))
  func addedAgainInSchedule() {
    let log = record(observing: nil) { _, loop, log in
      let isFirst = Box(true)
      let source = source(log) { source, loop, mode in
        guard isFirst.value else { return }
        isFirst.value = false
        loop.remove(source, forMode: mode)
        loop.add(source, forMode: mode)
      }
      loop.add(source, forMode: "a")
      log.write("end")
      loop.remove(source, forMode: "a")
    }
    #expect(log == "+a( ) -a +a( ) end -a")
  }

  @Test("a source that is added again in its cancel is scheduled after it", .rule(.r72, .r73))
  func addedInCancel() {
    let log = record(observing: nil) { _, loop, log in
      let isFirst = Box(true)
      let box = Box(WeakBox<RunLoop.Source>(nil))
      let source = source(log) { loop, mode in
        guard isFirst.value, let source = box.value.object else { return }
        isFirst.value = false
        loop.add(source, forMode: mode)
        log.write("added")
      } scheduling: { _, _, _ in
      }
      box.value = WeakBox(source)
      loop.add(source, forMode: "a")
      loop.remove(source, forMode: "a")
      log.write("end")
      source.invalidate()
    }
    #expect(log == "+a( ) -a added +a( ) end -a")
  }

  @Test(
    "a source that is removed while a mode becomes common is cancelled after its schedule", .rule(.r102, .r72, .r73))
  func removedWhileModeBecomesCommon() {
    let log = record(observing: nil) { _, loop, log in
      let source = source(log) { source, loop, mode in
        if mode == "a" { loop.remove(source, forMode: .common) }
      }
      loop.add(source, forMode: .common)
      try? loop.addCommonMode("a")
      log.write("end")
      source.invalidate()
    }
    #expect(log == "+default( ) +a( -default ) -a end")
  }

  enum Leaving: String, CaseIterable {
    case removed, invalidated, threadEnds
  }

  @Test(
    "removing a source during its schedule on another thread leaves the cancel to that thread",
    .rule(.r72, .r73, .r115),
    arguments: Leaving.allCases)
  func leavesDuringSchedule(leaving: Leaving) {
    let log = Log()
    let (isScheduling, hasLeft) = (Latch(), Latch())
    let source = source(log) { _, _, _ in
      isScheduling.open()
      hasLeft.wait()
    }
    let running = RunningLoop { loop, _ in loop.keepAlive() }
    let loop = running.loop
    let adder = startThread {
      let isAdded = loop.add(source, forMode: "a")
      log.write("added \(isAdded)")
    }
    isScheduling.wait()
    switch leaving {
    case .removed: loop.remove(source, forMode: "a")
    case .invalidated: source.invalidate()
    case .threadEnds:
      loop.stop(mode: .default)
      _ = running.result()
    }
    log.write("left")
    hasLeft.open()
    adder.result()
    #expect(log.text == "+a( left ) -a added true")
    if leaving != .threadEnds {
      loop.stop(mode: .default)
      _ = running.result()
    }
    source.invalidate()
    #expect(log.text == "+a( left ) -a added true")
  }

  @Test(
    "the closures of a source that is invalidated during its schedule are released after its cancel", .rule(.r74, .m22))
  func released() {
    let log = Log()
    let (isScheduling, hasLeft) = (Latch(), Latch())
    let source = { [token = Token(log)] in
      RunLoop.Source(
        schedule: { _, _ in
          log.write("+")
          isScheduling.open()
          hasLeft.wait()
        },
        cancel: { _, _ in
          log.write("-")
          token.touch()
        }, perform: {})
    }()
    onVirtualTime { _, loop in
      let other = startThread {
        isScheduling.wait()
        source.invalidate()
        log.write("invalid")
        hasLeft.open()
      }
      loop.add(source, forMode: .default)
      other.result()
    }
    #expect(log.text == "+ invalid - released")
  }

  @Test(
    "simultaneous adds, removals and invalidations give as many cancels as schedules, in turn", .rule(.r72, .r73))
  func race() {
    for _ in 0..<50 {
      let depth = Box(0)
      let isWrong = Box(false)
      let source = RunLoop.Source(
        schedule: { _, _ in depth.update { if $0 == 0 { $0 = 1 } else { isWrong.value = true } } },
        cancel: { _, _ in depth.update { if $0 == 1 { $0 = 0 } else { isWrong.value = true } } }, perform: {})
      onVirtualTime { _, loop in
        let start = Latch()
        let threads = (0..<3).map { number in
          startThread {
            start.wait()
            for round in 0..<40 {
              loop.add(source, forMode: "a")
              if number == 2, round == 30 { source.invalidate() }
              loop.remove(source, forMode: "a")
            }
          }
        }
        start.open()
        for thread in threads { thread.result() }
      }
      #expect(depth.value == 0)
      #expect(!isWrong.value)
    }
  }

  private func short(_ mode: RunLoop.Mode) -> String { mode == .default ? "default" : mode.rawValue }
}
