// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopThreads
import Synchronization

/// Ends plaintext HTTP/2 connections on which a server keeps sending data that is not part of a response.
///
/// libcurl reads such frames as long as there are more, without any callbacks, so a separate thread checks once
/// per second while such connections exist. (On TLS connections, OpenSSL is asked for each record instead.)
final class FloodGuard: @unchecked Sendable {
  // Sendable: the lock guards the mutable state.

  final class Connection: @unchecked Sendable {
    // Sendable: used with the guard's lock held, except for the atomic values.
    fileprivate let descriptor: Int32
    /// The findings of the last check: the number of reports and received bytes, and the number of fruitless checks.
    fileprivate var found: (reports: UInt, bytes: UInt64, looks: Int) = (0, 0, 0)
    private let mark = Atomic<Bool>(false)
    // Relaxed, like `holds`: a check that reads an old value sees the new one next time, and several checks must
    // agree.
    fileprivate let reports = Atomic<UInt>(1)
    fileprivate let holds = Atomic<Int>(0)

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Called when libcurl reports that something has arrived on the connection, or asks for data to send.
    func noteProgress() { reports.wrappingAdd(1, ordering: .relaxed) }

    /// Called when a request on the connection pauses reading, so that libcurl keeps the data, or resumes it.
    func noteHold(_ isHeld: Bool) { holds.wrappingAdd(isHeld ? 1 : -1, ordering: .relaxed) }

    /// Whether the guard has ended the connection.
    var wasFlooded: Bool { mark.load(ordering: .acquiring) }
    fileprivate func end() {
      mark.store(true, ordering: .releasing)
      // The server is notified at once when the connection is closed; the kernel would keep the rest for a minute.
      var lingers = linger(l_onoff: 1, l_linger: 0)
      _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &lingers, socklen_t(MemoryLayout<linger>.size))
      _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }

  /// The maximum number of bytes that may arrive without libcurl reporting anything.
  static let mostFruitless: UInt64 = 1 << 20
  /// The maximum number of checks with unread data but no reports, where the system does not count received bytes.
  static let mostLooks = 60

  private let interval: Duration
  private let lock = Lock()
  private var connections: [Int32: Connection] = [:]
  /// The thread of the guard, which exists while there are connections.
  ///
  /// A loop that only waits for a timer needs no descriptor.
  private var thread: ResidentThread?

  /// - Parameter interval: The interval between checks. The default is one second.
  init(interval: Duration = .seconds(1)) { self.interval = interval }

  /// Monitors a connection until it is removed.
  ///
  /// Like ``remove(_:)``, called only on the loader's thread.
  ///
  /// - Throws: The error of starting the thread, in which case the connection is not monitored.
  func add(_ descriptor: Int32) throws(ThreadError) -> Connection {
    let connection = Connection(descriptor)
    // Added before checking for a thread, because the thread does not end while there is a connection.
    let needsThread = lock.withLock {
      connections[descriptor] = connection
      return thread == nil
    }
    guard needsThread else { return connection }
    do {
      let started = try ResidentThread(name: "HTTP.FloodGuard")
      started.runLoop.schedule(in: interval, repeating: interval) { [weak self] _ in self?.look() }
      lock.withLock { thread = started }
    } catch {
      remove(descriptor)
      throw error
    }
    return connection
  }

  /// Stops monitoring a connection; must be called before its descriptor is closed.
  func remove(_ descriptor: Int32) {
    lock.lock()
    let gone = connections.removeValue(forKey: descriptor)
    lock.unlock()
    withExtendedLifetime(gone) {}
  }

  /// Checks all connections once and ends those that are flooded, or ends the thread if there are none.
  func look() {
    lock.lock()
    for connection in connections.values where !connection.wasFlooded {
      let reports = connection.reports.load(ordering: .relaxed)
      let received = Self.received(connection.descriptor)
      if connection.found.reports != reports || connection.holds.load(ordering: .relaxed) > 0 {
        connection.found = (reports, received ?? 0, 0)
      } else if received != nil {
        if Self.isFlooded(connection.descriptor, since: connection.found.bytes) { connection.end() }
      } else {
        connection.found.looks = Self.hasBytes(connection.descriptor) ? connection.found.looks + 1 : 0
        if connection.found.looks >= Self.mostLooks { connection.end() }
      }
    }
    let over = connections.isEmpty ? thread : nil
    if connections.isEmpty { thread = nil }
    lock.unlock()
    withExtendedLifetime(over) {}
  }

  /// Whether a connection has received more unreported data than allowed since it had received this number of bytes.
  static func isFlooded(_ descriptor: Int32, since bytes: UInt64) -> Bool {
    guard let received = received(descriptor) else { return false }
    // Data that was not read because the loader's thread was not scheduled is limited by the receive buffer.
    return received &- bytes > 2 * queueSize(descriptor) + mostFruitless
  }

  /// The number of bytes a TCP connection has received; nil for other sockets and on systems that do not count them.
  static func received(_ descriptor: Int32) -> UInt64? { TCPInfo(descriptor)?.received }

  private static func queueSize(_ descriptor: Int32) -> UInt64 {
    var size: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0 ? UInt64(max(0, size)) : 0
  }

  /// Whether there is data to read, or the end of the stream.
  static func hasBytes(_ descriptor: Int32) -> Bool {
    var question = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&question, 1, 0) > 0
  }
}
