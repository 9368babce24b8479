// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import Testing

/// The service manager's end of the socket.
private final class Manager {
  let path: String
  private let descriptor: Int32

  init() {
    path = "@runloop-tests-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let bytes = [0] + Array(path.utf8.dropFirst())
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
    withUnsafePointer(to: &name) { name in
      _ = name.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(2 + bytes.count))
      }
    }
  }

  deinit { close(descriptor) }

  /// The next message, or nil if none arrives in time.
  func message(within milliseconds: Int32) -> String? {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, milliseconds) == 1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
  }

  func fill() {
    let other = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    defer { close(other) }
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let bytes = [0] + Array(path.utf8.dropFirst())
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
    withUnsafePointer(to: &name) { name in
      name.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        while sendto(other, "other", 5, 0, name, socklen_t(2 + bytes.count)) == 5 {}
      }
    }
  }

  func drain() { while message(within: 0) != nil {} }
}

@Suite("The service manager's watchdog") struct ServiceWatchdogTests {
  @Test("the service manager is notified while loops respond, and not while one hangs")
  func hang() async throws {
    await #expect(processExitsWith: .success) {
      let manager = Manager()
      let worker = try ResidentThread(name: "watched")
      let watchdog = ServiceWatchdog(socket: manager.path, within: .milliseconds(400), loops: [worker.runLoop])
      #expect(watchdog != nil)
      for _ in 0..<3 { #expect(manager.message(within: 60_000) == "WATCHDOG=1") }
      let gate = Gate()
      worker.runLoop.perform { gate.wait() }
      // One more message may arrive before half the time is over. After that, the silence lasts as long as the hang.
      var silent = false
      for _ in 0..<100 where !silent { silent = manager.message(within: 1000) == nil }
      #expect(silent)
      gate.open()
      #expect(manager.message(within: 60_000) == "WATCHDOG=1")
      withExtendedLifetime(watchdog) {}
    }
  }

  @Test("a notification that the manager's full queue rejected is soon repeated, before half the time is over")
  func fullQueue() async {
    await #expect(processExitsWith: .success) {
      let manager = Manager()
      manager.fill()
      // It tries at once, and then every 5 s.
      let watchdog = ServiceWatchdog(socket: manager.path, within: .seconds(80))
      usleep(500_000)
      manager.drain()
      // Half of the time is 40 s.
      #expect(manager.message(within: 30_000) == "WATCHDOG=1")
      withExtendedLifetime(watchdog) {}
    }
  }

  @Test("without a service manager there is no watchdog")
  func none() {
    #expect(ServiceWatchdog() == nil)
    #expect(ServiceWatchdog(socket: "", within: .seconds(1)) == nil)
    #expect(ServiceWatchdog(socket: "relative", within: .seconds(1)) == nil)
    #expect(ServiceWatchdog(socket: "/" + String(repeating: "x", count: 200), within: .seconds(1)) == nil)
    #expect(ServiceWatchdog(socket: "@name", within: .zero) == nil)
  }

  @Test("a socket without a listener does no harm, and the watchdog ends with its object")
  func nobody() throws {
    let watchdog = ServiceWatchdog(socket: "@runloop-tests-nobody-\(getpid())", within: .milliseconds(50))
    #expect(watchdog != nil)
    let manager = Manager()
    var other = ServiceWatchdog(socket: manager.path, within: .milliseconds(50))
    #expect(manager.message(within: 60_000) == "WATCHDOG=1")
    withExtendedLifetime(other) {}
    other = nil
    // Messages still on their way.
    manager.drain()
    _ = manager.message(within: 300)
    #expect(manager.message(within: 300) == nil)
    withExtendedLifetime(watchdog) {}
  }
}

private final class Gate: @unchecked Sendable {
  // Sendable: a C library semaphore that lives as long as the process.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func open() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}
