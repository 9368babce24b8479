// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The number of blocking calls that were interrupted.
enum Interruptions {
  private static let counter = Atomic<Int>(0)

  static var count: Int { counter.load(ordering: .relaxed) }

  /// Counts a call that was interrupted.
  static func note(unless isDone: Bool) {
    if !isDone { counter.wrappingAdd(1, ordering: .relaxed) }
  }
}

/// Blocking calls that are made once, and counted if they are interrupted.
enum Blocking {
  /// Two connected descriptors, into which a byte is written after a delay.
  static func pair(isSocket: Bool, _ microseconds: UInt32) -> [Int32] {
    var ends: [Int32] = [0, 0]
    if isSocket { socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) } else { pipe(&ends) }
    let (from, to) = (ends[0], ends[1])
    later(microseconds) { write(isSocket ? from : to, "x", 1) }
    return isSocket ? [to, from] : [from, to]
  }

  static func read(_ descriptor: Int32) {
    var byte: UInt8 = 0
    Interruptions.note(unless: Glibc.read(descriptor, &byte, 1) == 1)
  }

  static func receive(_ descriptor: Int32) {
    var byte: UInt8 = 0
    Interruptions.note(unless: recv(descriptor, &byte, 1, 0) == 1)
  }

  static func poll(_ descriptor: Int32) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    Interruptions.note(unless: Glibc.poll(&entry, 1, 60_000) == 1)
  }

  static func sleep(_ microseconds: UInt32) { Interruptions.note(unless: usleep(microseconds) == 0) }

  /// Calls a function on another thread after a delay.
  static func later(_ microseconds: UInt32, _ body: @escaping @Sendable () -> Void) {
    start {
      usleep(microseconds)
      body()
    }
  }

  /// Starts a thread without a run loop.
  @discardableResult
  static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    final class Box: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(Box(body)).toOpaque()
    pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
        return nil
      }, context)
    return thread
  }
}

/// A flag that one thread sets and another waits for.
final class Flag: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
  /// Waits once.
  func waitOnce() { Interruptions.note(unless: sem_wait(semaphore) == 0) }
}

/// A pthread mutex.
final class Mutex: @unchecked Sendable {
  // Sendable: a mutex may be used by any thread.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  init() { pthread_mutex_init(mutex, nil) }

  func lock() { pthread_mutex_lock(mutex) }
  func unlock() { pthread_mutex_unlock(mutex) }
}
