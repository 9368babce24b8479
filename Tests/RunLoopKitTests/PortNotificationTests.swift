// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("The notification of a port's end", .timeLimit(.minutes(20)))
struct PortNotificationTests {
  @Test("a port's invalidation notification has Foundation's name")
  func name() {
    #expect(Port.didBecomeInvalidNotification == Foundation.Port.didBecomeInvalidNotification)
    #expect(Port.didBecomeInvalidNotification.rawValue == "NSPortDidBecomeInvalidNotification")
  }

  @Test(
    "a port's invalidation is posted once on the invalidating thread, after the loops have released it", .rule(.r74))
  func posted() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let (port, other) = (Port(), Port())
      loop.add(port, forMode: .common)
      let thread = Box<Int32>(0)
      let listener = Listener(Port.didBecomeInvalidNotification, port) { notification in
        let place = thread.value == RunLoop.callingThreadID ? "here" : "elsewhere"
        log.write("\(notification.object as? Port === port) \(place)")
        log.write("\(port.isValid) \(onNewThread { loop.contains(port, forMode: .common) })")
      }
      onNewThread {
        thread.value = RunLoop.callingThreadID
        other.invalidate()
        port.invalidate()
        port.invalidate()
      }
      withExtendedLifetime(listener) {}
      return log.text
    }
    #expect(log == "true here false false")
  }

  @Test("an observer of all ports is notified of each one")
  func all() {
    let ports = (0..<3).map { _ in Port() }
    let heard = Box<[Port]>([])
    let listener = Listener(Port.didBecomeInvalidNotification) { notification in
      if let port = notification.object as? Port, ports.contains(port) { heard.value.append(port) }
    }
    for port in ports { port.invalidate() }
    withExtendedLifetime(listener) {}
    #expect(heard.value == ports)
  }

  @Test(
    "a loop releases a port that invalidates itself in its own way and posts the notification", .rule(.r76))
  func own() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let box = {
        let port = OwnPort(log)
        loop.add(port, forMode: .default)
        loop.add(port, forMode: "A")
        return WeakBox(port)
      }()
      log.write("\(box.object?.isValid ?? false)")
      box.object?.invalidate()
      log.write("\(box.object == nil)")
      return log.text
    }
    #expect(log == "true gone true")
  }
}

/// A port that inherits only the name of its class.
private final class OwnPort: Port, @unchecked Sendable {
  // Sendable: used by one thread.
  private let log: Log
  private var isOpen = true

  init(_ log: Log) {
    self.log = log
    super.init()
  }

  deinit { log.write("gone") }

  override var isValid: Bool { isOpen }
  override func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {}
  override func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {}

  override func invalidate() {
    isOpen = false
    NotificationCenter.default.post(name: Port.didBecomeInvalidNotification, object: self)
  }
}
