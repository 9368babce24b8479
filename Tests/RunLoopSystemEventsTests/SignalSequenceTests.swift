// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

@Suite("Signals as a sequence", .timeLimit(.minutes(20)))
struct SignalSequenceTests {
  @Test("a sequence yields the signals, and releasing it ends the source")
  func events() async throws {
    let signal = testSignal(20)
    let (thread, loop) = SourceRig.startLoop()
    do {
      let events = try SignalSource.events(of: signal, on: loop)
      var iterator = events.makeAsyncIterator()
      for _ in 0..<3 {
        kill(getpid(), signal)
        #expect(await iterator.next()?.count == 1)
      }
      #expect(crl_signal_is_handled(signal) == 1)
    }
    #expect(crl_signal_is_handled(signal) == 0)
    loop.stop()
    thread.join()
  }

  @Test("signals that find the buffer full are counted in its last event")
  func full() async throws {
    let signal = testSignal(21)
    let (thread, loop) = SourceRig.startLoop()
    let events = try SignalSource.events(of: signal, on: loop, bufferSize: 2)
    let seen = Notes<Int>()
    let witness = try SignalSource(signal: signal) { _, event in seen.add(event.count) }
    try loop.add(witness, forMode: .default)
    for number in 1...10 {
      kill(getpid(), signal)
      waitUntil { seen.all.reduce(0, +) >= number }
    }
    witness.invalidate()
    loop.stop()
    thread.join()
    var counts: [Int] = []
    for await event in events { counts.append(event.count) }
    #expect(counts.count <= 2 && counts.reduce(0, +) >= 9)
  }

  @Test("a sequence of signals ends with its loop")
  func loopEnds() async throws {
    let signal = testSignal(22)
    let (thread, loop) = SourceRig.startLoop()
    let events = try SignalSource.events(of: signal, on: loop)
    let task = Task {
      var count = 0
      for await _ in events { count += 1 }
      return count
    }
    loop.stop()
    thread.join()
    #expect(await task.value == 0)
    #expect(crl_signal_is_handled(signal) == 0)
  }

  @Test("a cancelled task stops waiting for signals")
  func cancelled() async throws {
    let (thread, loop) = SourceRig.startLoop()
    let events = try SignalSource.events(of: testSignal(23), on: loop)
    let task = Task {
      for await _ in events {}
      return true
    }
    task.cancel()
    #expect(await task.value)
    loop.stop()
    thread.join()
  }
}

#if DEBUG
  @Suite("Signals when system calls fail", .timeLimit(.minutes(20)))
  struct SignalFaultTests {
    @Test("a source that cannot be created names the failed call", arguments: [SystemCall.eventCreate, .signalAction])
    func make(call: SystemCall) {
      let signal = testSignal(24)
      let plan = FaultPlan()
      plan.plan(call, .fails(EMFILE))
      _ = plan.rule {
        #expect(throws: SignalError.system(signal: signal, SystemError(call: call.rawValue, number: EMFILE))) {
          _ = try SignalSource(signal: signal) { _, _ in }
        }
      }
      #expect(plan.isUsedUp && crl_signal_is_handled(signal) == 0)
    }

    @Test("an action that could not be restored is restored with the next source")
    func restore() throws {
      let signal = testSignal(25)
      let plan = FaultPlan()
      plan.plan(.signalAction, nil, .fails(EINVAL))
      let source = try plan.rule {
        let source = try SignalSource(signal: signal) { _, _ in }
        source.invalidate()
        return source
      }
      // A source that is released tries once more.
      withExtendedLifetime(source) {
        #expect(plan.isUsedUp && crl_signal_is_handled(signal) == 1)
        SourceRig.start { raise(signal) }.join()
      }
      try SignalSource(signal: signal) { _, _ in }.invalidate()
      #expect(crl_signal_is_handled(signal) == 0)
    }

    @Test("a signal is reported even if its descriptor could not be read", arguments: [EINTR, EIO])
    func read(number: Int32) {
      SourceRig.onThread { loop in
        let signal = testSignal(number == EINTR ? 26 : 27)
        let counts = Notes<Int>()
        let plan = FaultPlan()
        plan.plan(.eventRead, .fails(number))
        do {
          let source = try SignalSource(signal: signal) { _, event in counts.add(event.count) }
          try loop.add(source, forMode: .default)
          raise(signal)
          plan.rule { loop.drain() }
          #expect(plan.isUsedUp && counts.all == [1])
          source.invalidate()
        } catch {
          Issue.record(error)
        }
      }
    }

    @Test("a mode without a descriptor rejects the source, which continues to count")
    func add() {
      SourceRig.onThread { loop in
        let signal = testSignal(28)
        let counts = Notes<Int>()
        let plan = FaultPlan()
        plan.plan(.epollCreate, .fails(EMFILE))
        do {
          let source = try SignalSource(signal: signal) { _, event in counts.add(event.count) }
          #expect(throws: RunLoopError.self) { try plan.rule { try loop.add(source, forMode: .default) } }
          #expect(source.isValid && !loop.contains(source, forMode: .default))
          raise(signal)
          try loop.add(source, forMode: .default)
          loop.drain()
          #expect(counts.all == [1])
          source.invalidate()
        } catch {
          Issue.record(error)
        }
      }
    }
  }
#endif
