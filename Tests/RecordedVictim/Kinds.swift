// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// Makes each kind of call-out, in a function named after it.
final class Kinds: Sendable {
  private let worker = sure(try ResidentThread(name: "kinds"))
  private var loop: RunLoop { worker.runLoop }

  func run() {
    block()
    blockOfModes()
    perform()
    performAndWait()
    timer()
    source0()
    source1()
    port()
    observer()
    schedule()
    job()
    // Performs the work that the call-outs have left.
    try? worker.performAndWait {}
    try? worker.performAndWait {}
    ready()
    waitForEnd()
  }

  private func block() { loop.perform {} }

  private func blockOfModes() {
    loop.perform(inModes: [.default, "another"]) { _ = self }
  }

  private func perform() {
    _ = try? worker.perform { _ = self }
  }

  private func performAndWait() {
    try? worker.performAndWait { _ = getpid() }
  }

  private func timer() {
    let hasFired = Flag()
    loop.schedule(in: .zero) { _ in hasFired.set() }
    hasFired.wait()
  }

  private func source0() {
    let hasRun = Flag()
    let source = RunLoop.Source { hasRun.set() }
    loop.add(source, forMode: .default)
    source.signal()
    loop.wakeUp()
    hasRun.wait()
  }

  private func source1() {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let hasRun = Flag()
    let source = RunLoop.DescriptorSource(descriptor: ends[0], events: .readable, repeats: false) { _, _ in
      hasRun.set()
    }
    sure(try loop.add(source, forMode: .default))
    write(ends[1], "x", 1)
    hasRun.wait()
  }

  private func port() {
    let hasRun = Flag()
    let port = Port { _, _ in hasRun.set() }
    loop.add(port, forMode: .default)
    sure(try port.send(Port.Message(id: 1)))
    hasRun.wait()
  }

  private func observer() {
    let hasRun = Flag()
    let observer = RunLoop.Observer(activities: .beforeTimers, repeats: false) { _, _ in hasRun.set() }
    loop.add(observer, forMode: .default)
    loop.wakeUp()
    hasRun.wait()
  }

  private func schedule() {
    let source = RunLoop.Source(
      schedule: { _, _ in _ = getpid() }, cancel: { _, _ in _ = getppid() }, perform: {})
    try? worker.performAndWait { [loop] in
      loop.add(source, forMode: .default)
      loop.remove(source, forMode: .default)
    }
  }

  private func job() {
    let hasRun = Flag()
    let pinned = Pinned(worker)
    Task.detached { await pinned.job(hasRun) }
    hasRun.wait()
  }
}

actor Pinned {
  private let worker: ResidentThread

  init(_ worker: ResidentThread) { self.worker = worker }

  nonisolated var unownedExecutor: UnownedSerialExecutor { worker.asUnownedSerialExecutor() }

  func job(_ hasRun: Flag) async {
    await Task.yield()
    hasRun.set()
  }
}

/// A flag that one thread sets and another waits for.
final class Flag: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}
