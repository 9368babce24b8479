// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import TestSupport
import Testing

@Suite("Durations at their limits, given to the instruments", .timeLimit(.minutes(20)))
struct ExtremeTimeTests {
  private static let durations: [Duration] = [
    Duration(attoseconds: .max), Duration(attoseconds: .min), .seconds(Int64.max), .seconds(Int64.min),
    .nanoseconds(Int64.max), .nanoseconds(Int64.min), .seconds(-1), .zero, Duration(attoseconds: 1),
  ]

  @Test("a hang watch accepts each extreme duration as threshold and backlog limit, and ends", arguments: durations)
  func watch(_ duration: Duration) throws {
    let thread = try ResidentThread()
    let watch = HangWatch(.init(threshold: duration, backlog: duration, loops: [thread.runLoop])) { _ in }
    let ran = Latch()
    try thread.perform { ran.open() }
    ran.wait()
    thread.stop()
    try thread.join()
    withExtendedLifetime(watch) {}
  }

  @Test("the last moments of each extreme duration are recorded, or there is nothing to record", arguments: durations)
  func record(_ duration: Duration) throws {
    let directory = try Victim.makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    do throws(InstrumentsError) {
      try Instruments.writeRecord(to: directory + "/record", last: duration)
    } catch {
      guard case .nothingRecorded = error else { throw error }
    }
  }
}
