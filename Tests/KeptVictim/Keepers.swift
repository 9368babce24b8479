// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads
import TestSupport

/// A thread whose loop holds one item of each kind, added by a function named after it.
final class Importer: @unchecked Sendable {
  // Sendable: only the one thread uses what is added.
  private var kept: [AnyObject] = []

  func start() {
    let thread = Thread { [self] in
      let loop = RunLoop.current
      addTimer(loop)
      addPort(loop)
      addSource(loop)
      addDescriptor(loop)
      addSignal(loop)
      addChild(loop)
      addListener(loop)
      addFiles(loop)
      loop.add(Timer(timeInterval: 60, repeats: true) { _ in }, forMode: "another")
      loop.run()
    }
    thread.name = "importer"
    sure(try thread.tryStart())
    waitUntilAsleep(thread)
    ready()
  }

  private func addTimer(_ loop: RunLoop) {
    loop.add(Timer(timeInterval: 3600, repeats: true) { [self] _ in kept = [] }, forMode: .default)
  }

  private func addPort(_ loop: RunLoop) { loop.add(Port { _, _ in }, forMode: .default) }

  private func addSource(_ loop: RunLoop) {
    loop.add(RunLoop.Source { [self] in kept = [] }, forMode: .common)
  }

  private func addDescriptor(_ loop: RunLoop) {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let source = RunLoop.DescriptorSource(descriptor: ends[0], events: .readable) { _, _ in _ = getpid() }
    sure(try loop.add(source, forMode: .default))
  }

  private func addSignal(_ loop: RunLoop) {
    let source = sure(try SignalSource(signal: SIGUSR2) { _, _ in _ = getpid() })
    sure(try loop.add(source, forMode: .default))
  }

  private func addChild(_ loop: RunLoop) {
    // The child ends with this process, which holds the other end of its input, and inherits no descriptor from it.
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    var child = pid_t()
    var words: [UnsafeMutablePointer<CChar>?] = [strdup("cat"), nil]
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
    for number in 1...2 { posix_spawn_file_actions_addopen(&actions, Int32(number), "/dev/null", O_RDWR, 0) }
    for number in 3..<Int32(256) { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    guard posix_spawnp(&child, "cat", &actions, nil, &words, environ) == 0 else { fatalError("no cat") }
    let source = sure(try ChildProcessSource(process: child) { _, _ in _ = getppid() })
    sure(try loop.add(source, forMode: .default))
  }

  private func addListener(_ loop: RunLoop) {
    let listener = sure(
      try ListeningSocket(at: SocketAddress(host: "127.0.0.1", port: 0)) { _, _ in _ = getuid() })
    sure(try loop.add(listener, forMode: .default))
  }

  private func addFiles(_ loop: RunLoop) {
    let source = sure(try FileChangeSource(path: "/tmp") { _, _ in _ = getgid() })
    sure(try loop.add(source, forMode: .default))
  }
}

/// Resident threads, which are never stopped.
final class Residents: @unchecked Sendable {
  // Sendable: only the first thread creates them.
  private static nonisolated(unsafe) var all: [ResidentThread] = []

  func start(says: Bool = true) {
    let worker = sure(try ResidentThread(name: "resident, with a name that is longer than the kernel's"))
    addTimer(worker.runLoop)
    // Every such thread has the source that performs handed-off work.
    sure(try worker.performAndWait {})
    while !worker.runLoop.isWaiting { usleep(100) }
    Residents.all.append(worker)
    if says { ready() }
  }

  private func addTimer(_ loop: RunLoop) {
    loop.add(Timer(timeInterval: 60, repeats: true) { _ in _ = getpid() }, forMode: .default)
  }
}

/// A thread that is kept only by work that was handed to it.
final class Performs: Sendable {
  func start() {
    let isHanded = Flag()
    let isDone = Flag()
    let thread = Thread {
      isHanded.wait()
      RunLoop.current.run()
    }
    thread.name = "performs"
    sure(try thread.tryStart())
    handOver(to: thread, isDone)
    isHanded.set()
    isDone.wait()
    waitUntilAsleep(thread)
    ready()
  }

  private func handOver(to thread: Thread, _ isDone: Flag) { sure(try thread.perform { isDone.set() }) }
}

/// A thread in a call-out that never returns, with blocks and a hand-off queued behind it.
final class Blocks: Sendable {
  func start() {
    let thread = Thread { [self] in
      let loop = RunLoop.current
      loop.add(Port(), forMode: .default)
      loop.perform { [self] in
        // By now the loop has taken the blocks that were posted before.
        post(loop)
        ready()
        waitForEnd()
      }
      loop.run()
    }
    thread.name = "blocks"
    sure(try thread.tryStart())
  }

  private func post(_ loop: RunLoop) {
    loop.perform { _ = getpid() }
    loop.perform(inModes: ["another"]) { _ = getppid() }
    loop.perform(inModes: [.common]) { _ = getuid() }
  }
}

/// The main loop, serving only the main dispatch queue.
final class Mains: Sendable {
  func start() {
    let loop = RunLoop.main
    let watcher = Thread {
      while !loop.isWaiting { usleep(100) }
      ready()
    }
    sure(try watcher.tryStart())
    loop.run()
  }
}

/// A thread that adds and removes items indefinitely.
final class Churn: Sendable {
  func start() {
    let thread = Thread {
      let loop = RunLoop.current
      loop.add(Port(), forMode: .default)
      for number in 0... {
        let source = RunLoop.Source {}
        loop.add(source, forMode: .default)
        loop.add(Timer(timeInterval: 0.0001, repeats: false) { _ in }, forMode: .common)
        loop.perform {}
        loop.run(mode: .default, for: .zero)
        source.invalidate()
        if number == 1000 { ready() }
      }
    }
    thread.name = "churn"
    sure(try thread.tryStart())
  }
}

/// Waits until a thread's loop sleeps.
private func waitUntilAsleep(_ thread: Thread) {
  while !(thread.runLoop?.isWaiting ?? false) { usleep(100) }
}

/// A flag that one thread sets and another waits for.
final class Flag: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}
