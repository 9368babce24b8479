// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Glibc
import RunLoopCore
import RunLoopThreads
import Synchronization
import TestSupport

/// Thirteen loops that hang in different ways, each in a function named after it.
final class Hangs: Sendable {
  private let time: UInt32
  private let workers: [String: ResidentThread]
  private let helper = makeWorker("helper")
  private let over = Flag()

  static let names = [
    "read", "sleep", "lock", "compute", "semaphore", "performAndWait", "join", "descriptor", "port", "observer", "job",
    "schedule", "nested",
  ]

  init(lasting time: UInt32) {
    self.time = time
    workers = Dictionary(uniqueKeysWithValues: Hangs.names.map { ($0, makeWorker($0)) })
    for worker in workers.values { while !worker.runLoop.isWaiting { usleep(100) } }
  }

  private func worker(_ name: String) -> ResidentThread {
    guard let worker = workers[name] else { fatalError("\(name)") }
    return worker
  }

  /// Makes all loops hang at once, and waits until the hangs are over.
  func run() {
    postRead()
    startSleep()
    signalLock()
    performCompute()
    postSemaphore()
    postPerformAndWait()
    postJoin()
    writeToDescriptor()
    sendToPort()
    addObserver()
    startJob()
    addSource()
    postNested()
    for _ in Hangs.names { over.wait() }
  }

  private func postRead() {
    worker("read").runLoop.perform { self.hangInRead() }
  }

  private func startSleep() {
    worker("sleep").runLoop.schedule(in: .milliseconds(10)) { _ in self.hangInSleep() }
  }

  private func signalLock() {
    let source = RunLoop.Source { self.hangInLock() }
    worker("lock").runLoop.add(source, forMode: .default)
    source.signal()
    worker("lock").runLoop.wakeUp()
  }

  private func performCompute() {
    sure(try worker("compute").perform { self.hangInCompute() })
  }

  private func postSemaphore() {
    worker("semaphore").runLoop.perform { self.hangInSemaphore() }
  }

  private func postPerformAndWait() {
    worker("performAndWait").runLoop.perform { self.hangInPerformAndWait() }
  }

  private func postJoin() {
    worker("join").runLoop.perform { self.hangInJoin() }
  }

  private func writeToDescriptor() {
    let ends = Blocking.pair(isSocket: false, 0)
    let source = RunLoop.DescriptorSource(descriptor: ends[0], events: .readable, repeats: false) { _, _ in
      self.hangInDescriptor()
    }
    sure(try worker("descriptor").runLoop.add(source, forMode: .default))
  }

  private func sendToPort() {
    let port = Port { _, _ in self.hangInPort() }
    worker("port").runLoop.add(port, forMode: .default)
    sure(try port.send(Port.Message(id: 1)))
  }

  private func addObserver() {
    let observer = RunLoop.Observer(activities: .beforeTimers, repeats: false) { _, _ in self.hangInObserver() }
    worker("observer").runLoop.add(observer, forMode: .default)
    worker("observer").runLoop.wakeUp()
  }

  private func startJob() {
    let pinned = Pinned(worker("job"))
    Task.detached { await pinned.hangInJob(self) }
  }

  private func addSource() {
    let source = RunLoop.Source(schedule: { _, _ in self.hangInSchedule() }, cancel: { _, _ in }, perform: {})
    worker("schedule").runLoop.perform { RunLoop.current.add(source, forMode: .default) }
  }

  private func postNested() {
    worker("nested").runLoop.perform {
      // The nested run sleeps first. The hang is in one of its call-outs.
      RunLoop.current.schedule(in: .milliseconds(50)) { _ in self.hangInNested() }
      RunLoop.current.run(mode: .default, for: .milliseconds(60))
    }
  }

  @inline(never) private func hangInRead() {
    Blocking.read(Blocking.pair(isSocket: false, time)[0])
    over.set()
  }

  @inline(never) private func hangInSleep() {
    Blocking.sleep(time)
    over.set()
  }

  @inline(never) private func hangInLock() {
    let mutex = Mutex()
    let isHeld = Flag()
    let time = time
    Blocking.start {
      crl_thread_set_kernel_name("holder")
      mutex.lock()
      isHeld.set()
      usleep(time)
      mutex.unlock()
    }
    isHeld.wait()
    mutex.lock()
    mutex.unlock()
    over.set()
  }

  @inline(never) private func hangInCompute() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let end = now.tv_sec * 1_000_000 + now.tv_nsec / 1000 + Int(time)
    var number: UInt64 = 1
    repeat {
      for _ in 0..<100_000 { number = number &* 6_364_136_223_846_793_005 &+ 1 }
      clock_gettime(CLOCK_MONOTONIC, &now)
    } while now.tv_sec * 1_000_000 + now.tv_nsec / 1000 < end
    Hangs.result.store(number, ordering: .relaxed)
    over.set()
  }

  private static let result = Atomic<UInt64>(0)

  @inline(never) private func hangInSemaphore() {
    let flag = Flag()
    Blocking.later(time) { flag.set() }
    flag.waitOnce()
    over.set()
  }

  @inline(never) private func hangInPerformAndWait() {
    let time = time
    try? helper.performAndWait { Blocking.sleep(time) }
    over.set()
  }

  @inline(never) private func hangInJoin() {
    let time = time
    let thread = Blocking.start {
      crl_thread_set_kernel_name("joined")
      usleep(time)
    }
    pthread_join(thread, nil)
    over.set()
  }

  @inline(never) private func hangInDescriptor() {
    Blocking.poll(Blocking.pair(isSocket: false, time)[0])
    over.set()
  }

  @inline(never) private func hangInPort() {
    Blocking.sleep(time)
    over.set()
  }

  @inline(never) private func hangInObserver() {
    Blocking.receive(Blocking.pair(isSocket: true, time)[0])
    over.set()
  }

  @inline(never) fileprivate func hangInJob() {
    Blocking.sleep(time)
    over.set()
  }

  @inline(never) private func hangInSchedule() {
    Blocking.sleep(time)
    over.set()
  }

  @inline(never) private func hangInNested() {
    Blocking.sleep(time)
    over.set()
  }
}

private actor Pinned {
  private let worker: ResidentThread

  init(_ worker: ResidentThread) { self.worker = worker }

  nonisolated var unownedExecutor: UnownedSerialExecutor { worker.asUnownedSerialExecutor() }

  func hangInJob(_ hangs: Hangs) { hangs.hangInJob() }
}
