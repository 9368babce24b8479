// SPDX-License-Identifier: Apache-2.0

import CCounts
import Glibc
import RunLoopCore
import RunLoopThreads

let all: [Gate] =
  [
    Gate(name: "post", count: 1000) { count, measure in
      postToHeldLoop(measure) { loop in for _ in 0..<count { loop.perform {} } }
    },
    // A closure that captures one object needs no context: the object itself serves as one.
    Gate(name: "post of a closure with an object", count: 1000) { count, measure in
      let object = Object()
      postToHeldLoop(measure) { loop in for _ in 0..<count { loop.perform { object.touch() } } }
    },
    Gate(name: "post of one with an object and a number", count: 1000) {
      count, measure in
      let object = Object()
      postToHeldLoop(measure) { loop in for number in 0..<count { loop.perform { object.touch(number) } } }
    },
    Gate(name: "post for one mode", count: 1000) { count, measure in
      let modes: [RunLoop.Mode] = ["gates"]
      postToHeldLoop(measure) { loop in for _ in 0..<count { loop.perform(inModes: modes) {} } }
    },
    Gate(name: "post for two modes", count: 1000) { count, measure in
      postToHeldLoop(measure) { loop in
        for _ in 0..<count { loop.perform(inModes: [.default, .common]) {} }
      }
    },
    Gate(name: "post to a loop that sleeps", count: 100) { count, measure in
      let (loop, thread) = startLoop()
      let answered = Signal()
      let answer: @Sendable () -> Void = { answered.send() }
      for turn in 0..<count + 10 {
        while !loop.isWaiting || !counts_is_asleep(thread) { sched_yield() }
        if turn >= 10 { measure { loop.perform(answer) } } else { loop.perform(answer) }
        answered.wait()
      }
    },
    Gate(name: "run of a post", count: 1000) { count, measure in
      onLoop { loop in
        for turn in 0..<5 {
          let isMeasured = turn == 4
          if isMeasured { loop.perform { measure.begin() } }
          for _ in 0..<count { loop.perform {} }
          if isMeasured { loop.perform { measure.end() } }
          loop.perform { loop.stop() }
          loop.runUntilStopped()
        }
      }
    },
    Gate(name: "pass that performs a source", count: 1000) { count, measure in
      makePasses(count, measure, observed: false)
    },
    Gate(name: "pass with six observers", count: 1000) { count, measure in
      makePasses(count, measure, observed: true)
    },
    Gate(name: "pass that serves a descriptor", count: 1000) { count, measure in
      onLoop { loop in
        let turns = Turns(count, measure) { loop.stop() }
        // An empty pipe is always writable. An ended one is always readable, but a handler that ignores the end is
        // reported.
        let source = RunLoop.DescriptorSource(descriptor: emptyPipe(), events: .writable) { _, _ in turns.next() }
        do { try loop.add(source, forMode: .default) } catch { fail("\(error)") }
        loop.runUntilStopped()
      }
    },
    Gate(name: "new timer, added and cancelled", count: 1000) { count, measure in
      withTimers { loop, timers, base in
        measure {
          for index in 0..<count {
            let timer = Timer(deadline: base.advanced(by: .seconds(100 + index % 7))) { _ in }
            loop.add(timer, forMode: .default)
            timer.invalidate()
          }
        }
      }
    },
    Gate(name: "move of a timer's date", count: 1000) { count, measure in
      withTimers { _, timers, base in
        measure {
          for index in 0..<count {
            timers[index % timers.count].deadline = base.advanced(by: .seconds(200 + index % 7))
          }
        }
      }
    },
    Gate(name: "fire of a repeating timer", count: 200) { count, measure in
      onLoop { loop in
        let turns = Turns(count, measure) { loop.stop() }
        loop.add(Timer(deadline: loop.now, interval: .microseconds(500)) { _ in turns.next() }, forMode: .default)
        loop.runUntilStopped()
      }
    },
    // Measured in the third mode too, as the timer leaves and enters the heaps of all its modes.
    Gate(name: "fire of a timer in three modes", count: 200) { count, measure in
      onLoop { loop in
        let turns = Turns(count, measure) { loop.stop() }
        let timer = Timer(deadline: loop.now, interval: .microseconds(500), tolerance: .microseconds(100)) { _ in
          turns.next()
        }
        for mode: RunLoop.Mode in [.default, "second", "third"] { loop.add(timer, forMode: mode) }
        loop.runUntilStopped()
      }
    },
    Gate(name: "call between actors on one thread", count: 1000) { count, measure in
      let thread = residentThread()
      let (left, right) = (Pinned(thread), Pinned(thread))
      onTask {
        await left.call(right, count)
        await left.call(right, count, measure)
      }
    },
    Gate(name: "job of a task on the thread", count: 1000) { count, measure in
      let thread = residentThread()
      onTask {
        await Task(executorPreference: thread) {
          for _ in 0..<count { await Task.yield() }
          measure.begin()
          for _ in 0..<count { await Task.yield() }
          measure.end()
        }.value
      }
    },
  ] + transactionGates + displayGates + interfaceGates + nodeGates
