// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// Causes one thing of each kind on a second loop, each from a call-out of the first.
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
    // What is resumed before its task waits goes on by itself, and nobody can tell that a task waits: of several, each
    // of which has more time for it, one at least does.
    for milliseconds in [0, 1, 4, 16, 64, 256] as [UInt32] { resumesTask(after: 1000 * milliseconds) }
    fromPlainThread()
    // Everything is recorded when both have done this.
    for thread in [first, second] { try? thread.performAndWait {} }
    ready()
    waitForEnd()
  }

  /// Lets the first loop call a function, and waits until the second has done what came of it.
  private func step(_ done: Flag, _ body: @escaping @Sendable () -> Void) {
    // The second sleeps, so that it has to be woken.
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

/// Makes tasks in call-outs of a first loop, which come to a second by way of Swift's pool.
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

/// A flag that is set for another, once it is known for which.
final class Relay: @unchecked Sendable {
  // Sendable: the target is written before the task goes on that reads it.
  private var target: Flag?

  func forward(to target: Flag) { self.target = target }
  func set() { target?.set() }
}

/// What a task waits with.
final class Box: @unchecked Sendable {
  // Sendable: written before the flag is set for which the reader waits.
  private var continuation: CheckedContinuation<Void, Never>?
  let done = Relay()

  func put(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }
  func resume() { continuation?.resume() }
}
