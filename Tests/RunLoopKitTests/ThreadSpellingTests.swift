// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import RunLoopThreads
import TestSupport
import Testing

@Suite("Threads in Foundation's spelling", .timeLimit(.minutes(20)))
struct ThreadSpellingTests {
  @Test("a sleep until a date ends after the date", arguments: [0.0004, 0.002])
  func sleeps(seconds: Double) {
    let date = Date(timeIntervalSinceNow: seconds)
    Thread.sleep(until: date)
    #expect(Date() >= date)
  }

  @Test(
    "a past or missing date means no sleep",
    arguments: [-.infinity, Date.distantPast.timeIntervalSinceReferenceDate, -978_307_199.5, 0, .nan])
  func noSleep(seconds: Double) {
    Thread.sleep(until: Date(timeIntervalSinceReferenceDate: seconds))
  }

  @Test(
    "a sleep until a distant date continues",
    arguments: [1e10, Date.distantFuture.timeIntervalSinceReferenceDate, 1e300])
  func farSleep(seconds: Double) async {
    switch seconds {
    case 1e10:
      await #expect(processExitsWith: .exitCode(3)) { ThreadSpellingTests.sleepFar(until: 1e10) }
    case 1e300:
      await #expect(processExitsWith: .exitCode(3)) { ThreadSpellingTests.sleepFar(until: 1e300) }
    default:
      await #expect(processExitsWith: .exitCode(3)) {
        ThreadSpellingTests.sleepFar(until: Date.distantFuture.timeIntervalSinceReferenceDate)
      }
    }
  }

  /// Sleeps until a far date, while another thread ends the process once this one sleeps.
  private static func sleepFar(until seconds: Double) {
    let sleeper = RunLoop.callingThreadID
    Thread.detachNewThread {
      // If the sleep returned, the process would end successfully.
      waitUntil { System.isAsleep(thread: sleeper) }
      exit(3)
    }
    Thread.sleep(until: Date(timeIntervalSinceReferenceDate: seconds))
  }

  @Test("a thread's quality of service is kept, and mapped to a niceness as far as Linux has one")
  func quality() throws {
    let thread = Thread {}
    #expect(thread.qualityOfService == .default)
    let kept: [(QualityOfService, Int?)] = [
      (.userInteractive, nil), (.userInitiated, nil), (.utility, 5), (.background, 15), (.default, 0),
    ]
    for (quality, niceness) in kept {
      thread.qualityOfService = quality
      #expect(thread.qualityOfService == quality && thread.configuration.niceness == niceness)
    }
    thread.qualityOfService = .background
    thread.start()
    try thread.join()
    #expect(thread.qualityOfService == .background && thread.rejections == [])
  }

  @Test("the calling thread's priority can be read and set")
  func priority() throws {
    try onThread {
      #expect(Thread.threadPriority() == 0.5)
      #expect(Thread.setThreadPriority(0.25))
      #expect(Thread.threadPriority() < 0.5 && Thread.current.configuration.niceness == 10)
    }
  }

  @Test("threads have the members of Foundation's objects")
  func objects() {
    let thread = Thread {}
    #expect(thread.isEqual(thread) && !thread.isEqual(Thread {}) && thread.hash == thread.hashValue)
    #expect(thread.description == thread.debugDescription && thread.description.hasPrefix("<Thread>{name = (null)"))
  }
}
