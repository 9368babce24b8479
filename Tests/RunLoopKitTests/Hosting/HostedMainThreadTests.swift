// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import XCTest
import TestSupport

/// These tests need the real main thread, which serves the main dispatch queue.
final class HostedMainThreadTests: XCTestCase {
  // R110, R111, R112, M32
  func testMainQueueIsDrainedOnceAndInOrder() {
    let order = Order()
    let log = hostedHere { rig in
      rig.detach {
        for number in 0..<500 { DispatchQueue.main.async { order.append(number) } }
        DispatchQueue.main.async { rig.loop.stop() }
      }
      rig.run()
    }
    XCTAssertEqual(log, "stopped")
    XCTAssertEqual(order.numbers, Array(0..<500))
    XCTAssert(order.wasMain)
  }

  // R8, R25, R27, M32
  func testMainQueueIsASourceAndKeepsAModeAlive() {
    let log = hostedHere { rig in
      rig.run(for: .milliseconds(1))
      rig.whenAsleep { _ in DispatchQueue.main.async { rig.write("Q") } }
      rig.run(returnAfterSourceHandled: true)
      DispatchQueue.main.async { rig.write("R") }
      rig.run(for: .zero, returnAfterSourceHandled: true)
    }
    XCTAssertEqual(log, "timedOut Q handledSource R handledSource")
  }

  // R109, R110, M32
  func testRunsInABlockOfTheMainQueueLeaveItAlone() {
    // An earlier test that performed on the main thread leaves its source in the mode.
    let isEmpty = RunLoop.main.itemCount(of: .default) == 0
    let limit = isEmpty ? Duration.unlimited : .milliseconds(50)
    let log = hostedHere { rig in
      DispatchQueue.main.async {
        rig.write("[")
        DispatchQueue.main.async {
          rig.write("Q")
          rig.loop.stop()
        }
        rig.run(for: limit)
        foundationTimer(after: 0.001) { _ in rig.write("F") }
        rig.run(for: limit)
        rig.write("]")
      }
      rig.run()
    }
    let end = isEmpty ? "finished" : "timedOut"
    XCTAssertEqual(log, "[ \(end) F \(end) ] Q stopped")
  }

  // R110, R112, M32
  func testServingMayBeginAndEndInABlockOfTheMainQueue() {
    let rig = Log()
    let loop = RunLoop.current
    DispatchQueue.main.async {
      do { try loop.serveCoreFoundation() } catch { rig.write("\(error)") }
      rig.write("begun")
      DispatchQueue.main.async {
        rig.write("served")
        foundationTimer(after: 0.001) { _ in
          rig.write("F")
          DispatchQueue.main.async {
            loop.stopServingCoreFoundation()
            rig.write("ended")
            DispatchQueue.main.async {
              rig.write("ours")
              loop.stop()
            }
          }
        }
      }
    }
    XCTAssertEqual(loop.runUntilStopped(), .stopped)
    XCTAssertFalse(loop.isServingCoreFoundation)
    serveWithoutACallAgain()
    XCTAssertEqual(rig.text, "begun served F ended ours")
  }

  // R110, M32
  func testWhatIsQueuedBetweenIsNotLostWhenServingBeginsAndEnds() {
    let order = Order()
    let loop = RunLoop.current
    for number in 0..<20 {
      DispatchQueue.main.async { order.append(number) }
      if number.isMultiple(of: 2) {
        do { try loop.serveCoreFoundation() } catch { XCTFail("\(error)") }
      } else {
        loop.stopServingCoreFoundation()
      }
      if number.isMultiple(of: 3) {
        XCTAssertEqual(loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true), .handledSource)
      }
    }
    while order.numbers.count < 20 { loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true) }
    XCTAssertEqual(order.numbers, Array(0..<20))
    serveWithoutACallAgain()
  }

  // R112, M32
  func testMainActorRunsHere() {
    let log = hostedHere { rig in
      rig.detach {
        Task { @MainActor in
          MainActor.assertIsolated()
          rig.write("A")
          try? await Task.sleep(for: .milliseconds(1))
          rig.write("\(isMainThread())")
          rig.loop.stop()
        }
      }
      rig.run()
    }
    XCTAssertEqual(log, "A true stopped")
  }

  // M32
  func testAFileHandleThatReadsInTheBackgroundTellsSo() throws {
    let pipe = Foundation.Pipe()
    try pipe.fileHandleForWriting.write(contentsOf: Data("hello".utf8))
    let log = hostedHere { rig in
      let heard = Heard(FileHandle.readCompletionNotification, pipe.fileHandleForReading) { notification in
        let data = notification.userInfo?[NSFileHandleNotificationDataItem] as? Data
        rig.write("\(data.map { String(decoding: $0, as: UTF8.self) } ?? "nothing") \(isMainThread())")
        rig.loop.stop()
      }
      pipe.fileHandleForReading.readInBackgroundAndNotify()
      rig.run()
      withExtendedLifetime(heard) {}
    }
    XCTAssertEqual(log, "hello true stopped")
  }

  // M32
  func testAFileHandleThatWaitsForDataTellsSo() throws {
    let pipe = Foundation.Pipe()
    let log = hostedHere { rig in
      let heard = Heard(.NSFileHandleDataAvailable, pipe.fileHandleForReading) { _ in
        rig.write("available \(isMainThread())")
        rig.loop.stop()
      }
      pipe.fileHandleForReading.waitForDataInBackgroundAndNotify()
      let writing = pipe.fileHandleForWriting.fileDescriptor
      rig.whenAsleep { _ in _ = write(writing, "data", 4) }
      rig.run()
      withExtendedLifetime(heard) {}
    }
    XCTAssertEqual(log, "available true stopped")
  }

  // M28, R110
  func testAGuestOnTheMainThreadDrainsTheMainQueueOnce() throws {
    let order = Order()
    let loop = RunLoop.current
    let guest = try RunLoop.Guest()
    DispatchQueue.global().async {
      for number in 0..<100 { DispatchQueue.main.async { order.append(number) } }
    }
    while order.numbers.count < 100 {
      var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
      poll(&entry, 1, guest.timeoutMilliseconds)
      _ = guest.service()
    }
    loop.stop()
    XCTAssertEqual(guest.service(), .stopped)
    guest.invalidate()
    XCTAssertEqual(order.numbers, Array(0..<100))
  }
}

private func isMainThread() -> Bool { Foundation.Thread.isMainThread }

private final class Order: Sendable {
  private let entries = Box<[(number: Int, isMain: Bool)]>([])
  func append(_ number: Int) { entries.update { $0.append((number, isMainThread())) } }
  var numbers: [Int] { entries.value.map(\.number) }
  var wasMain: Bool { entries.value.allSatisfy(\.isMain) }
}

/// Observes a notification until it is released.
private final class Heard {
  private let token: any NSObjectProtocol

  init(_ name: Notification.Name, _ object: Any?, _ body: @escaping @Sendable (Notification) -> Void) {
    token = NotificationCenter.default.addObserver(forName: name, object: object, queue: nil, using: body)
  }

  deinit { NotificationCenter.default.removeObserver(token) }
}
