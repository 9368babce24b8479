// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopInstruments
import Testing

@Suite("Late timers") struct LatenessTests {
  /// Observes every half second how late a timer has been and how long its thread had no processor.
  ///
  /// - Parameter stops: The looks at which the process is stopped.
  private func timers(
    _ looks: [(late: UInt64, starved: Int64)], limit: Int64 = CRL_LATE, stops: Set<Int> = []
  ) -> [Lateness.Item] {
    var lateness = Lateness(limit: limit)
    for (index, look) in looks.enumerated() {
      let now = Int64(index) * 500_000_000
      lateness.noteProcess(isStopped: stops.contains(index), at: now)
      let timer = look.late == 0 ? nil : LateService(count: look.late, late: 150_000_000, code: 7)
      lateness.note(timer, 3, 1, 42, isBusy: true, at: now) {
        (ThreadClock(running: 0, runnable: look.starved, time: now), false)
      }
    }
    return lateness.items
  }

  @Test("a timer that is late although its thread had the processor is named once")
  func late() {
    let found = timers([(0, 0), (1, 0), (5, 0)])
    #expect(found.map(\.thread) == [42])
    #expect(found.map(\.code) == [7])
    #expect(found.map(\.late) == [150_000_000])
  }

  @Test("a timer less late than the limit is not named")
  func limit() {
    #expect(timers([(0, 0), (1, 0)], limit: 150_000_000).count == 1)
    #expect(timers([(0, 0), (1, 0)], limit: 150_000_001).isEmpty)
  }

  @Test("time before and after a stop of the process counts towards lateness, but not the stop itself")
  func stopped() {
    #expect(timers([(0, 0), (0, 0), (1, 0), (1, 0)], stops: [1]).isEmpty)
    #expect(timers([(0, 0), (1, 0), (1, 0)], stops: [0]).isEmpty)
    // One look later, the timer may have become due during the stop. Two looks later it cannot.
    #expect(timers([(0, 0), (0, 0), (0, 0), (1, 0)], stops: [1]).isEmpty)
    #expect(timers([(0, 0), (0, 0), (1, 0), (1, 0), (2, 0)], stops: [1]).count == 1)
  }

  @Test("a timer already late at the first look, or starved of the processor, is not named")
  func innocent() {
    #expect(timers([(4, 0), (4, 0)]).isEmpty)
    #expect(timers([(0, 0), (1, 100_000_000), (2, 200_000_000)]).isEmpty)
  }
}
