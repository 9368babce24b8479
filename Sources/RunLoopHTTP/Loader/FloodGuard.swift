// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopThreads
import Synchronization

/// Ends connections of plain HTTP/2 on which more and more comes that is part of no answer.
///
/// The library reads such frames as long as there are some, and calls nobody: a thread of its own looks, once in a
/// second as long as there are such connections. (On an encrypted one OpenSSL is asked for each record.)
final class FloodGuard: @unchecked Sendable {
  // Sendable: the lock guards what changes.

  /// A connection that is looked at.
  final class Connection: @unchecked Sendable {
    // Sendable: used under the guard's lock, but for the atomic values.
    fileprivate let descriptor: Int32
    /// What the last look has found: how much was reported, how many bytes had arrived, and for how many looks.
    fileprivate var found: (reports: UInt, bytes: UInt64, looks: Int) = (0, 0, 0)
    private let mark = Atomic<Bool>(false)
    // Relaxed, as the next: a look that reads an old number finds the new one the next time, and several looks must
    // agree.
    fileprivate let reports = Atomic<UInt>(1)
    fileprivate let holds = Atomic<Int>(0)

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// The library reports something that has arrived on it, or asks for what is sent.
    func noteProgress() { reports.wrappingAdd(1, ordering: .relaxed) }

    /// A request on it takes no bytes for now, or takes them again; the library keeps what comes.
    func noteHold(_ isHeld: Bool) { holds.wrappingAdd(isHeld ? 1 : -1, ordering: .relaxed) }

    /// Whether it was ended.
    var wasFlooded: Bool { mark.load(ordering: .acquiring) }
    fileprivate func end() {
      mark.store(true, ordering: .releasing)
      // When it is closed, the server is to know at once: the system would keep what is left of it for a minute.
      var lingers = linger(l_onoff: 1, l_linger: 0)
      _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &lingers, socklen_t(MemoryLayout<linger>.size))
      _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }

  /// How many bytes may come of which the library reports nothing.
  static let mostFruitless: UInt64 = 1 << 20
  /// At how many looks there may be bytes of which it reports nothing, where the system does not count them.
  static let mostLooks = 60

  private let interval: Duration
  private let lock = Lock()
  private var connections: [Int32: Connection] = [:]
  /// Where it looks, as long as there is a connection.
  ///
  /// A loop that waits for a timer alone needs no descriptor.
  private var thread: ResidentThread?

  /// - Parameter interval: How often it looks.
  init(interval: Duration = .seconds(1)) { self.interval = interval }

  /// Looks at a connection until it is removed.
  ///
  /// Called by the loader's thread alone, as ``remove(_:)`` is.
  ///
  /// - Throws: What starting the thread throws. The connection is looked at by nobody then.
  func add(_ descriptor: Int32) throws(ThreadError) -> Connection {
    let connection = Connection(descriptor)
    // Before the thread is asked for: with a connection it does not end.
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

  /// Looks at a connection no more; before its descriptor is closed.
  func remove(_ descriptor: Int32) {
    lock.lock()
    let gone = connections.removeValue(forKey: descriptor)
    lock.unlock()
    withExtendedLifetime(gone) {}
  }

  /// Looks at all connections once, and ends those that are flooded; without any, the thread ends.
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

  /// Whether a connection has received more of which nothing was reported than it may, since a number of bytes.
  static func isFlooded(_ descriptor: Int32, since bytes: UInt64) -> Bool {
    guard let received = received(descriptor) else { return false }
    // What nobody has taken yet, as the thread had no turn, is no more than the queue takes.
    return received &- bytes > 2 * queueSize(descriptor) + mostFruitless
  }

  /// How many bytes a connection of TCP has received; nil for another, and for a system that does not say.
  static func received(_ descriptor: Int32) -> UInt64? { TCPInfo(descriptor)?.received }

  private static func queueSize(_ descriptor: Int32) -> UInt64 {
    var size: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0 ? UInt64(max(0, size)) : 0
  }

  /// Whether there is something to read, or the end.
  static func hasBytes(_ descriptor: Int32) -> Bool {
    var question = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&question, 1, 0) > 0
  }
}
