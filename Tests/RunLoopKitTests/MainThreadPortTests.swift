// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import XCTest
import TestSupport

// The assertions of Foundation's public tests about ports, on the real main thread, on which synchronous XCTest
// methods run.
final class MainThreadPortTests: XCTestCase {
  // The socket port and its remote port are the same port here, because both are in this process.
  func testAMessageReachesTheDelegateOnTheMainLoop() throws {
    XCTAssertTrue(Thread.isMainThread)
    let local = Port()
    defer { local.invalidate() }
    let data = Data("over the sea".utf8)
    let received = Box<[Bool]>([])
    let delegate = ClosureDelegate { message in
      received.value.append(message.components as? [AnyHashable] == [data as NSData] && Thread.isMainThread)
    }
    local.setDelegate(delegate)
    local.schedule(in: .main, forMode: .default)
    let sent = Box(false)
    let sender = Thread {
      let parts = NSMutableArray(array: [data])
      sent.value = local.send(before: Date(timeIntervalSinceNow: 600), components: parts, from: nil, reserved: 0)
    }
    sender.start()
    while received.value.isEmpty {
      _ = RunLoop.main.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true)
    }
    try sender.join()
    XCTAssertEqual(received.value, [true])
    XCTAssertTrue(sent.value)
    local.setDelegate(nil)
    local.remove(from: .main, forMode: .default)
    XCTAssertFalse(RunLoop.main.contains(local, forMode: .default))
    withExtendedLifetime(delegate) {}
  }

  func testTwoPortsAreEqualOnlyIfTheyAreOne() {
    let (first, second) = (Port(), Port())
    XCTAssertEqual(first, first)
    XCTAssertNotEqual(first, second)
  }

  // R72, R73, R76
  func testALoopSchedulesAPortOnceForEachModeAndLetsAnInvalidOneGo() {
    let loop = RunLoop.current
    let isGone = Box(false)
    do {
      let port = CountingPort { isGone.value = true }
      let custom = RunLoop.Mode(rawValue: "a mode of its own")
      XCTAssertEqual(port.scheduledModes, [])
      loop.add(port, forMode: .default)
      XCTAssertEqual(port.scheduledModes, [.default])
      loop.add(port, forMode: .default)
      XCTAssertEqual(port.scheduledModes, [.default])
      loop.add(port, forMode: custom)
      XCTAssertEqual(port.scheduledModes, [.default, custom])
      loop.remove(port, forMode: custom)
      XCTAssertEqual(port.scheduledModes, [.default])
      loop.remove(port, forMode: custom)
      XCTAssertEqual(port.scheduledModes, [.default])
      loop.add(port, forMode: custom)
      XCTAssertEqual(port.scheduledModes, [.default, custom])
      XCTAssertFalse(isGone.value)
      port.invalidate()
    }
    XCTAssertTrue(isGone.value)
  }
}

/// A port that counts its modes, adds nothing to loops by itself, and has its own invalidation.
private final class CountingPort: Port, @unchecked Sendable {
  // Sendable: used by one thread.
  private(set) var scheduledModes: [RunLoop.Mode] = []
  private var isOpen = true
  private let onEnd: @Sendable () -> Void

  init(onEnd: @escaping @Sendable () -> Void) {
    self.onEnd = onEnd
    super.init()
  }

  deinit {
    invalidate()
    onEnd()
  }

  override var isValid: Bool { isOpen }

  override func invalidate() {
    guard isValid else { return }
    isOpen = false
    NotificationCenter.default.post(name: Port.didBecomeInvalidNotification, object: self)
  }

  override func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) { scheduledModes.append(mode) }
  override func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) { scheduledModes.removeAll { $0 == mode } }
}
