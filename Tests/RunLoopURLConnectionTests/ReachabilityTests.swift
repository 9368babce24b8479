// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Glibc
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopURLConnection

@Suite("AFNetworking's reachability")
struct ReachabilityTests {
  @Test("the status is reported at the start and once for each change, until monitoring stops")
  func changes() throws {
    let thread = try ResidentThread(name: "Reachability")
    defer { thread.stop() }
    let (status, pipes) = (Box(AFNetworkReachabilityStatus.notReachable), try RawPipe())
    try #require(fcntl(pipes.reading, F_SETFL, O_NONBLOCK) == 0)
    let queue = DispatchQueue(label: "reachability")
    let manager = AFNetworkReachabilityManager(
      .init(
        open: { OwnedDescriptor(dup(pipes.reading)) }, status: { status.value }, loop: thread.runLoop, queue: queue))
    #expect(manager.networkReachabilityStatus == .unknown && !manager.isReachable)
    let log = Log()
    manager.setReachabilityStatusChange { log.write("\($0.rawValue)") }
    let name = Notification.Name.AFNetworkingReachabilityDidChange
    let observer = NotificationCenter.default.addObserver(forName: name, object: manager, queue: nil) {
      log.write("note \($0.userInfo?[AFNetworkingReachabilityNotificationStatusItem] ?? "none")")
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    func change(to next: AFNetworkReachabilityStatus) throws {
      status.value = next
      pipes.write()
      waitUntil { !isReadableNow(pipes.reading) }
      // The thread has handled it when it accepts more work, and the queue when it is empty.
      _ = try thread.performAndWait {}
      queue.sync {}
    }
    manager.startMonitoring()
    queue.sync {}
    try change(to: .reachableViaWiFi)
    try change(to: .reachableViaWiFi)
    try change(to: .reachableViaWWAN)
    #expect(log.text == "0 note 0 2 note 2 1 note 1")
    #expect(manager.isReachableViaWWAN && manager.isReachable && !manager.isReachableViaWiFi)
    #expect(manager.localizedNetworkReachabilityStatusString() == "Reachable via WWAN")
    manager.stopMonitoring()
    status.value = .notReachable
    pipes.write()
    _ = try thread.performAndWait {}
    queue.sync {}
    #expect(log.text == "0 note 0 2 note 2 1 note 1")
    #expect(manager.isReachable)
  }

  @Test("the descriptor stays open while a change is handled, even if monitoring stops")
  func stoppedMeanwhile() throws {
    let thread = try ResidentThread(name: "Reachability")
    defer { thread.stop() }
    let pipes = try RawPipe()
    try #require(fcntl(pipes.reading, F_SETFL, O_NONBLOCK) == 0)
    // The number alone may have been reused by now.
    let same: @Sendable (Int32) -> Bool = { number in
      var (one, other) = (stat(), stat())
      return fstat(number, &one) == 0 && fstat(pipes.reading, &other) == 0 && one.st_ino == other.st_ino
    }
    let (number, isOpen) = (Box<Int32>(-1), Box<Bool?>(nil))
    let stopped = Box<AFNetworkReachabilityManager?>(nil)
    let manager = AFNetworkReachabilityManager(
      .init(
        open: {
          let copy = dup(pipes.reading)
          number.value = copy
          return OwnedDescriptor(copy)
        },
        status: {
          if let manager = stopped.value {
            manager.stopMonitoring()
            isOpen.value = same(number.value)
          }
          return .notReachable
        }, loop: thread.runLoop, queue: DispatchQueue(label: "reachability")))
    manager.startMonitoring()
    stopped.value = manager
    defer { stopped.value = nil }
    pipes.write()
    waitUntil { isOpen.value != nil }
    #expect(isOpen.value == true)
    // It is closed afterwards.
    waitUntil { !same(number.value) }
  }

  @Test("without a descriptor the status is reported once")
  func noDescriptor() {
    let queue = DispatchQueue(label: "reachability")
    let manager = AFNetworkReachabilityManager(.init(open: { nil }, status: { .notReachable }, queue: queue))
    let log = Log()
    manager.setReachabilityStatusChange { log.write("\($0.rawValue)") }
    manager.startMonitoring()
    queue.sync {}
    #expect(log.text == "0")
  }

  @Test("the system's routes are read, and the netlink socket receives all messages")
  func routes() throws {
    let descriptor = try #require(NetworkRoutes.open())
    NetworkRoutes.drain(descriptor.number)
    #expect(NetworkRoutes.status() != .unknown)
  }
}
