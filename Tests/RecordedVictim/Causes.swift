// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// Causes one call-out of each kind on a second loop, each from a call-out of the first.
final class Causes: Sendable {
  private let first = sure(try ResidentThread(name: "first"))
  private let second = sure(try ResidentThread(name: "second"))
  private var loop: RunLoop { second.runLoop }

  func run() {
    post()
    performs()
    waits()
    signals()
    sends()
    addsTimer()
    movesTimer()
    makesTask()
    makesTaskInPool()
    // A continuation resumed before its task waits never involves the loop, and it cannot be observed that a task
    // waits. So several are resumed after increasing delays, of which at least one is late enough.
    for milliseconds in [0, 1, 4, 16, 64, 256] as [UInt32] { resumesTask(after: 1000 * milliseconds) }
    fromPlainThread()
    // Once both have performed this, everything has been recorded.
    for thread in [first, second] { try? thread.performAndWait {} }
    ready()
    waitForEnd()
  }

  /// Makes the first loop call a function, and waits until the second has run its consequence.
  private func step(_ done: Flag, _ body: @escaping @Sendable () -> Void) {
    // The second loop must be asleep, so that the call has to wake it.
    while !loop.isWaiting { usleep(100) }
    first.runLoop.perform(body)
    done.wait()
  }

  private func post() {
    let done = Flag()
    step(done) { [loop] in loop.perform { done.set() } }
  }

  private func performs() {
    let done = Flag()
    step(done) { [second] in _ = try? second.perform { done.set() } }
  }

  private func waits() {
    let done = Flag()
    step(done) { [second] in
      _ = try? second.performAndWait { usleep(1000) }
      done.set()
    }
  }

  private func signals() {
    let ran = Flag()
    let source = RunLoop.Source { ran.set() }
    loop.add(source, forMode: .default)
    let done = Flag()
    step(done) { [loop] in
      source.signal()
      loop.wakeUp()
      ran.wait()
      done.set()
    }
    loop.remove(source, forMode: .default)
  }

  private func sends() {
    let got = Flag()
    let port = Port { _, _ in got.set() }
    loop.add(port, forMode: .default)
    let done = Flag()
    step(done) {
      try? port.send(Port.Message(id: 1))
      try? port.send(Port.Message(id: 2))
      got.wait()
      got.wait()
      done.set()
    }
    loop.remove(port, forMode: .default)
  }

  private func addsTimer() {
    let done = Flag()
    step(done) { [loop] in
      loop.schedule(in: .milliseconds(1)) { _ in done.set() }
    }
  }

  private func movesTimer() {
    let fired = Flag()
    let timer = loop.schedule(in: .seconds(3600)) { _ in fired.set() }
    let done = Flag()
    step(done) {
      timer.move(after: .milliseconds(1))
      fired.wait()
      done.set()
    }
  }

  private func makesTask() {
    let pinned = Pinned(second)
    let done = Flag()
    step(done) {
      Task { await pinned.isMade(done) }
    }
  }

  private func makesTaskInPool() {
    let pinned = Pinned(second)
    let done = Flag()
    step(done) {
      Task.detached {
        await Task.yield()
        await pinned.isMadeInPool(done)
      }
    }
  }

  private func resumesTask(after microseconds: UInt32) {
    let pinned = Pinned(second)
    let box = Box()
    let waits = Flag()
    Task.detached {
      await withCheckedContinuation { continuation in
        box.put(continuation)
        waits.set()
      }
      await pinned.isResumed(box.done)
    }
    waits.wait()
    usleep(microseconds)
    let done = Flag()
    step(done) {
      box.done.forward(to: done)
      box.resume()
    }
  }

  private func fromPlainThread() {
    let done = Flag()
    while !loop.isWaiting { usleep(100) }
    loop.perform { done.set() }
    done.wait()
  }
}

/// Creates tasks in call-outs of a first loop that reach a second loop through Swift's thread pool.
final class Tasks: Sendable {
  private let first = sure(try ResidentThread(name: "first"))
  private let second = sure(try ResidentThread(name: "second"))

  func run() {
    let pinned = Pinned(second)
    for _ in 0..<200 {
      let done = Flag()
      first.runLoop.perform { self.makeTask(pinned, done) }
      done.wait()
    }
    for thread in [first, second] { try? thread.performAndWait {} }
    ready()
    waitForEnd()
  }

  private func makeTask(_ pinned: Pinned, _ done: Flag) {
    Task.detached {
      await Task.yield()
      await pinned.isMadeInPool(done)
    }
  }
}

extension Pinned {
  func isMade(_ done: Flag) { done.set() }
  func isMadeInPool(_ done: Flag) { done.set() }
  func isResumed(_ done: Relay) { done.set() }
}

/// Sets another flag, which is chosen later.
final class Relay: @unchecked Sendable {
  // Sendable: the target is written before the task that reads it continues.
  private var target: Flag?

  func forward(to target: Flag) { self.target = target }
  func set() { target?.set() }
}

/// Holds a task's continuation.
final class Box: @unchecked Sendable {
  // Sendable: written before the flag that the reader waits for is set.
  private var continuation: CheckedContinuation<Void, Never>?
  let done = Relay()

  func put(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }
  func resume() { continuation?.resume() }
}
