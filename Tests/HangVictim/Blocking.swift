// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// How many blocking calls did not do what they were to.
enum Interruptions {
  private static let counter = Atomic<Int>(0)

  static var count: Int { counter.load(ordering: .relaxed) }

  /// Counts a call that was interrupted.
  static func note(unless isDone: Bool) {
    if !isDone { counter.wrappingAdd(1, ordering: .relaxed) }
  }
}

/// Blocking calls, each of which is made once and counted if it is interrupted.
enum Blocking {
  /// A pair of ends into which a byte is written after a time.
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

  /// Calls a function on another thread after a time.
  static func later(_ microseconds: UInt32, _ body: @escaping @Sendable () -> Void) {
    start {
      usleep(microseconds)
      body()
    }
  }

  /// Starts a thread without a loop.
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

/// What one thread waits for and another sets.
final class Flag: @unchecked Sendable {
  // Sendable: a semaphore of the C library, which lives as long as the process.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
  /// Waits once.
  func waitOnce() { Interruptions.note(unless: sem_wait(semaphore) == 0) }
}

/// A lock of the C library.
final class Mutex: @unchecked Sendable {
  // Sendable: made to be used by several threads.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  init() { pthread_mutex_init(mutex, nil) }

  func lock() { pthread_mutex_lock(mutex) }
  func unlock() { pthread_mutex_unlock(mutex) }
}
