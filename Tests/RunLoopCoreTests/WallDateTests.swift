// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Dates of the wall clock and ticks", .timeLimit(.minutes(20)))
struct WallDateTests {
  private static let billion: Int64 = 1_000_000_000
  /// The wall clock of 2026, and a system that has run for a month.
  private static let offset: Int64 = 800_000_000 * billion + 123_456_789 - 2_592_000 * billion

  @Test("a date converts to a tick, to the nanosecond that the date resolves", .rule(.r92))
  func tick() {
    func nanoseconds(_ date: Double, offset: Int64 = 0) -> Int64 { Tick(wallDate: date, offset: offset).nanoseconds }
    #expect(nanoseconds(0) == 0)
    #expect(nanoseconds(0.057) == 57_000_000)
    #expect(nanoseconds(-0.057) == -57_000_000)
    #expect(nanoseconds(1.5) == 1_500_000_000)
    #expect(nanoseconds(-1.5) == -1_500_000_000)
    #expect(nanoseconds(800_000_000.5, offset: 799_999_999 * Self.billion) == 1_500_000_000)
    #expect(nanoseconds(9_000_000_000) == 9_000_000_000 * Self.billion)
  }

  @Test("every nanosecond of the first second converts to a date and back", .rule(.r92))
  func exact() {
    for nanoseconds in stride(from: Int64(0), through: Self.billion, by: 999_983) {
      let date = Tick(nanoseconds: nanoseconds).wallDate(offset: 0)
      #expect(date == Double(nanoseconds) / 1e9)
      #expect(Tick(wallDate: date, offset: 0).nanoseconds == nanoseconds)
    }
  }

  @Test("a tick's date is the nearest one possible, and the date's tick no further away", .rule(.r92))
  func roundTrip() {
    var random = SplitMix64(seed: 7)
    for _ in 0..<10_000 {
      let tick = Tick(nanoseconds: Int64.random(in: 0..<(10_000_000 * Self.billion), using: &random))
      let back = Tick(wallDate: tick.wallDate(offset: Self.offset), offset: Self.offset)
      // Today's dates have a resolution of 119 nanoseconds.
      #expect(abs(back.nanoseconds - tick.nanoseconds) <= 60)
    }
  }

  @Test("a date beyond the clock's range saturates, and NaN is never reached", .rule(.m12, .m29))
  func saturates() {
    for offset in [0, Self.offset, -Self.offset, .max, .min] {
      for date in [63_113_904_000, 1e19, Double.greatestFiniteMagnitude, .infinity, .nan] {
        #expect(Tick(wallDate: date, offset: offset) == .never)
      }
      for date in [-63_114_076_800, -1e19, -Double.greatestFiniteMagnitude, -Double.infinity] {
        #expect(Tick(wallDate: date, offset: offset) == .distantPast)
      }
      #expect(Tick.never.wallDate(offset: offset) == 63_113_904_000)
      #expect(Tick.distantPast.wallDate(offset: offset) == -63_114_076_800)
    }
    #expect(Tick(wallDate: 9_199_999_999, offset: -.max) == .never)
    #expect(Tick(wallDate: -9_199_999_999, offset: .max) == .distantPast)
    #expect(Tick(nanoseconds: .max - 1).wallDate(offset: 2) == 63_113_904_000)
    #expect(Tick(nanoseconds: .min + 1).wallDate(offset: -2) == -63_114_076_800)
  }

  @Test("equal dates are equal ticks while the wall clock is not set", .rule(.r92))
  func equal() {
    let ticks = (0..<2000).map { _ in Tick(wallDate: 800_000_000, offset: SystemWaiter.shared.wallOffset) }
    // The first measurements may be those of a thread that was preempted.
    #expect(Set(ticks.dropFirst(1000)).count == 1)
  }

  @Test("the system's wall clock lies between the offset's values before and after", .rule(.r92))
  func system() {
    for _ in 0..<100 {
      let waiter = SystemWaiter.shared
      let before = waiter.now.wallDate(offset: waiter.wallOffset)
      let wall = Date().timeIntervalSinceReferenceDate
      let begin = waiter.now.nanoseconds
      let offset = waiter.wallOffset
      let end = waiter.now
      // The offset is too small by at most the time it took to read the clocks and what is ignored, and the date is
      // rounded.
      let error = Double(end.nanoseconds - begin) / 1e9 + 0.000_021
      #expect(before <= wall + 0.000_001)
      #expect(wall <= end.wallDate(offset: offset) + error)
    }
  }
}
