// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

func lastWork() {
  let worker = sure(try ResidentThread(name: "importer, a name that is longer than the kernel's"))
  for number in 0..<1000 { worker.runLoop.perform { _ = number } }
  worker.runLoop.perform {
    ready()
    waitForEnd()
  }
  waitForEnd()
}

func endlessWork() {
  let worker = sure(try ResidentThread(name: "importer"))
  @Sendable func again(_ number: Int) {
    worker.runLoop.perform {
      // One of the chains reports once there is enough to record.
      if number == 1000 { ready() }
      again(number + 1)
    }
  }
  again(0)
  for _ in 0..<50 { again(1001) }
  waitForEnd()
}

func idle(loops: Int) {
  var threads: [ResidentThread] = []
  for number in 0..<loops { threads.append(sure(try ResidentThread(name: "idle \(number)"))) }
  for thread in threads {
    while !thread.runLoop.isWaiting { usleep(100) }
  }
  ready()
  withExtendedLifetime(threads) { waitForEnd() }
}

func wakes() {
  let worker = sure(try ResidentThread(name: "importer"))
  let timer = worker.runLoop.schedule(in: .zero, repeating: .microseconds(100)) { _ in }
  worker.runLoop.add(timer, forMode: .default)
  ready()
  withExtendedLifetime(worker) { waitForEnd() }
}

func hang() {
  let worker = sure(try ResidentThread(name: "importer"))
  worker.runLoop.perform {
    for _ in 0..<5 { worker.runLoop.perform {} }
    ready()
    waitForEnd()
  }
  waitForEnd()
}

func forkWithin() {
  let worker = sure(try ResidentThread(name: "parent"))
  worker.runLoop.perform {
    let child = forkProcess()
    if child == 0 {
      endWithTest()
      // The child's loop records to its own file.
      let loop = RunLoop.current
      loop.perform {
        ready()
        waitForEnd()
      }
      loop.run(mode: .default, for: .seconds(60))
      _exit(0)
    }
    print(child)
    fflush(nil)
    waitForEnd()
  }
  waitForEnd()
}
