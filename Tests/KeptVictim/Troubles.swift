// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// Programs with one typical production problem each.
enum Troubles {
  /// The main loop waits for a lock whose owner waits for the main loop.
  static func deadlock() -> Never {
    let importer = sure(try ResidentThread(name: "importer"))
    let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    pthread_mutex_init(lock, nil)
    let cache = Cache(lock)
    let isHeld = Flag()
    importer.runLoop.perform { cache.importRows(isHeld) }
    isHeld.wait()
    RunLoop.main.perform {
      ready()
      cache.refreshScreen()
    }
    while true { RunLoop.main.run(mode: .default, for: .seconds(60)) }
  }

  /// The main loop takes a lock that it already holds.
  static func selfDeadlock() -> Never {
    let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    pthread_mutex_init(lock, nil)
    pthread_mutex_lock(lock)
    let cache = Cache(lock)
    RunLoop.main.perform {
      ready()
      cache.refreshScreen()
    }
    while true { RunLoop.main.run(mode: .default, for: .seconds(60)) }
  }

  /// A timer takes so long that another is always late.
  static func overload() {
    let worker = sure(try ResidentThread(name: "sensors"))
    worker.runLoop.add(heartbeat(), forMode: .default)
    worker.runLoop.add(readTelemetry(), forMode: .default)
    ready()
    withExtendedLifetime(worker) { waitForEnd() }
  }

  private static func heartbeat() -> Timer { Timer(timeInterval: 0.01, repeats: true) { _ in _ = getpid() } }

  private static func readTelemetry() -> Timer { Timer(timeInterval: 0.001, repeats: true) { _ in usleep(130_000) } }

  /// A loop receives work faster than it performs it.
  static func backlog() {
    let encoder = sure(try ResidentThread(name: "encoder"))
    ready()
    while true {
      for _ in 0..<10 { encoder.runLoop.perform { usleep(2000) } }
      usleep(5000)
    }
  }

  /// Timers are added and never invalidated.
  static func growth() {
    let client = sure(try ResidentThread(name: "client"))
    let often = Timer(timeInterval: 0.005, repeats: true) { _ in reconnect() }
    client.runLoop.add(often, forMode: .default)
    ready()
    withExtendedLifetime(client) { waitForEnd() }
  }

  private static func reconnect() {
    RunLoop.current.add(Timer(timeInterval: 3600, repeats: true) { _ in _ = getppid() }, forMode: .default)
  }

  /// A handler does not read the data that is available.
  static func unread() {
    let reader = sure(try ResidentThread(name: "reader"))
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    write(ends[1], "x", 1)
    let source = RunLoop.DescriptorSource(descriptor: ends[0], events: .readable) { _, _ in _ = getuid() }
    sure(try reader.runLoop.add(source, forMode: .default))
    ready()
    withExtendedLifetime((reader, source)) { waitForEnd() }
  }

  /// Blocks that take 30 ms each fill every pass, while a descriptor is ready; no single call-out hangs.
  static func starved() {
    let worker = sure(try ResidentThread(name: "starved"))
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let commands = ends
    let source = RunLoop.DescriptorSource(descriptor: commands[0], events: .readable) { _, _ in
      var byte: UInt8 = 0
      read(commands[0], &byte, 1)
      write(commands[1], "x", 1)
    }
    sure(try worker.runLoop.add(source, forMode: .default))
    write(commands[1], "x", 1)
    @Sendable func work() {
      usleep(30_000)
      worker.runLoop.perform { work() }
    }
    for _ in 0..<15 { worker.runLoop.perform { work() } }
    ready()
    withExtendedLifetime((worker, source)) { waitForEnd() }
  }

  /// Each hang is over before the next one begins.
  static func stutters() {
    let worker = sure(try ResidentThread(name: "stutters"))
    worker.runLoop.add(Timer(timeInterval: 0.6, repeats: true) { _ in flushToDisk() }, forMode: .default)
    ready()
    withExtendedLifetime(worker) { waitForEnd() }
  }

  private static func flushToDisk() { usleep(400_000) }

  /// A stopped thread performs the work that it was given before.
  static func drains() {
    let flusher = sure(try ResidentThread(name: "flusher"))
    // The other work is still waiting when the loop has stopped.
    let isStopped = Flag()
    sure(try flusher.perform { isStopped.wait() })
    sure(try flusher.perform { flushBeforeEnd() })
    flusher.stop()
    isStopped.set()
    ready()
    withExtendedLifetime(flusher) { waitForEnd() }
  }

  private static func flushBeforeEnd() { waitForEnd() }

  /// Many timers are due at once and take 30 ms each; no single call-out hangs.
  static func manyShort() {
    let worker = sure(try ResidentThread(name: "many"))
    for _ in 0..<2000 {
      worker.runLoop.add(Timer(timeInterval: 0.001, repeats: true) { _ in usleep(30_000) }, forMode: .default)
    }
    ready()
    withExtendedLifetime(worker) { waitForEnd() }
  }
}

/// The cache that both threads lock.
private final class Cache: @unchecked Sendable {
  // Sendable: a pthread mutex that is never destroyed.
  private let lock: UnsafeMutablePointer<pthread_mutex_t>

  init(_ lock: UnsafeMutablePointer<pthread_mutex_t>) { self.lock = lock }

  func importRows(_ isHeld: Flag) {
    pthread_mutex_lock(lock)
    isHeld.set()
    sure(try Thread.main.performAndWait {})
    pthread_mutex_unlock(lock)
  }

  func refreshScreen() {
    pthread_mutex_lock(lock)
    pthread_mutex_unlock(lock)
  }
}
