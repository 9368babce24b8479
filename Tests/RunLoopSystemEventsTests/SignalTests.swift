// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

/// Returns a signal for one test, as a signal's action applies to the whole process.
func testSignal(_ number: Int32) -> Int32 { __libc_current_sigrtmin() + number }

@Suite("Signals", .timeLimit(.minutes(20)))
struct SignalTests {
  @Test("a signal calls the handler on the loop's thread, and reports its sender")
  func sender() {
    SourceRig.onThread { loop in
      let signal = testSignal(0)
      let events = Notes<SignalSource.Event>()
      let thread = pthread_self()
      do {
        let source = try SignalSource(signal: signal) { _, event in
          #expect(pthread_equal(pthread_self(), thread) != 0)
          events.add(event)
        }
        try loop.add(source, forMode: .default)
        #expect(kill(getpid(), signal) == 0)
        loop.run { events.count == 1 }
        let event = events.all[0]
        #expect(event.signal == signal && event.count == 1 && event.sender == getpid() && event.user == getuid())
        #expect(event.code == 0 && event.value == nil)
        #expect(sigqueue(getpid(), signal, sigval(sival_ptr: UnsafeMutableRawPointer(bitPattern: 77))) == 0)
        loop.run { events.count == 2 }
        #expect(events.all[1].value == 77 && events.all[1].sender == getpid() && events.all[1].code == -1)
        source.invalidate()
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("signals received before the source is in a mode are counted in one call")
  func coalesced() {
    SourceRig.onThread { loop in
      let signal = testSignal(1)
      let events = Notes<SignalSource.Event>()
      do {
        let source = try SignalSource(signal: signal) { _, event in events.add(event) }
        // A signal that a thread sends to itself has been handled when `raise` returns, and errno is preserved.
        errno = 42
        for _ in 0..<5 { raise(signal) }
        #expect(errno == 42)
        try loop.add(source, forMode: .default)
        loop.run { events.count > 0 }
        loop.drain()
        #expect(events.all.map(\.count) == [5])
        source.invalidate()
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("every source of a signal reports it, in its modes only")
  func severalSources() {
    SourceRig.onThread { loop in
      let signal = testSignal(2)
      let names = Notes<String>()
      do {
        let sources = try ["a", "b"].map { name in
          try SignalSource(signal: signal) { _, event in names.add("\(name)\(event.count)") }
        }
        try loop.add(sources[0], forMode: .default)
        try loop.add(sources[1], forMode: "other")
        try loop.add(sources[1], forMode: "third")
        raise(signal)
        loop.drain()
        #expect(names.all == ["a1"])
        raise(signal)
        loop.drain("other")
        loop.drain("third")
        #expect(names.all == ["a1", "b2"])
        loop.drain()
        #expect(names.all == ["a1", "b2", "a1"])
        loop.remove(sources[0], forMode: .default)
        #expect(!loop.contains(sources[0], forMode: .default) && loop.contains(sources[1], forMode: "other"))
        raise(signal)
        loop.drain()
        #expect(names.count == 3)
        for source in sources { source.invalidate() }
        #expect(!loop.contains(sources[1], forMode: "other"))
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("a common source is in every common mode, and one loop reports a signal for a source in two loops")
  func commonAndLoops() {
    let (thread, other) = SourceRig.startLoop()
    SourceRig.onThread { loop in
      let signal = testSignal(3)
      let events = Notes<Int>()
      do {
        try loop.addCommonMode("mine")
        let source = try SignalSource(signal: signal) { _, event in events.add(event.count) }
        try loop.add(source, forMode: .common)
        #expect(loop.contains(source, forMode: "mine") && loop.contains(source, forMode: .common))
        try other.add(source, forMode: .default)
        for _ in 0..<20 {
          let before = events.all.reduce(0, +)
          raise(signal)
          while events.all.reduce(0, +) == before { loop.drain("mine") }
        }
        #expect(events.all.reduce(0, +) == 20)
        source.invalidate()
      } catch {
        Issue.record(error)
      }
    }
    other.stop()
    thread.join()
  }

  @Test("the last source restores the former action")
  func restored() throws {
    let signal = testSignal(4)
    var former = sigaction()
    former.__sigaction_handler.sa_handler = { _ in }
    former.sa_flags = SA_NODEFER
    #expect(sigaction(signal, &former, nil) == 0)
    let first = try SignalSource(signal: signal) { _, _ in }
    let second = try SignalSource(signal: signal) { _, _ in }
    #expect(crl_signal_is_handled(signal) == 1)
    first.invalidate()
    #expect(crl_signal_is_handled(signal) == 1)
    second.invalidate()
    var now = sigaction()
    #expect(sigaction(signal, nil, &now) == 0)
    #expect(crl_signal_is_handled(signal) == 0 && now.sa_flags & SA_NODEFER != 0)
  }

  @Test("an action that other code has installed in the meantime stays")
  func replaced() throws {
    let signal = testSignal(5)
    let source = try SignalSource(signal: signal) { _, _ in }
    var other = sigaction()
    other.__sigaction_handler.sa_handler = { _ in }
    other.sa_flags = SA_NODEFER
    #expect(sigaction(signal, &other, nil) == 0)
    source.invalidate()
    var now = sigaction()
    #expect(sigaction(signal, nil, &now) == 0)
    #expect(now.sa_flags & SA_NODEFER != 0)
    // A new source installs its handler, and later restores that action.
    let next = try SignalSource(signal: signal) { _, _ in }
    #expect(crl_signal_is_handled(signal) == 1)
    next.invalidate()
    #expect(sigaction(signal, nil, &now) == 0)
    #expect(crl_signal_is_handled(signal) == 0 && now.sa_flags & SA_NODEFER != 0)
  }

  @Test(
    "a signal that cannot be handled is rejected with its number",
    arguments: [SIGKILL, SIGSTOP, SIGSEGV, SIGILL, 0, -1, 32, 33, 65, 1000, .max, .min])
  func rejected(signal: Int32) {
    #expect(throws: SignalError.cannotBeHandled(signal: signal)) { try SignalSource(signal: signal) { _, _ in } }
  }

  @Test("the handler is released when the source is invalid and its call-out has returned")
  func released() {
    SourceRig.onThread { loop in
      let signal = testSignal(6)
      let log = Notes<String>()
      do {
        let source: SignalSource
        do {
          let probe = Token { log.add("released") }
          source = try SignalSource(signal: signal) { source, _ in
            source.invalidate()
            probe.touch()
            log.add("called \(source.isValid)")
          }
        }
        try loop.add(source, forMode: .default)
        raise(signal)
        loop.run { log.count > 0 }
        #expect(log.all == ["called false", "released"])
        source.invalidate()
        #expect(throws: RunLoopError.invalidSource) { try loop.add(source, forMode: .default) }
        #expect(Set([source, source]).count == 1)
        #expect(source.debugDescription.hasPrefix("<SignalSource 0x"))
        #expect(source.debugDescription.hasSuffix("{valid = No, version = 1, signal = \(signal)}"))
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("a source lives as long as a loop has it, and is released with the loop's thread")
  func ownership() {
    let log = Notes<String>()
    let signal = testSignal(7)
    SourceRig.onThread { loop in
      do {
        let probe = Token { log.add("released") }
        try loop.add(
          SignalSource(signal: signal) { _, _ in
            probe.touch()
            log.add("called")
          }, forMode: .default)
      } catch {
        Issue.record(error)
      }
      raise(signal)
      loop.run { log.count > 0 }
      #expect(log.all == ["called"])
    }
    #expect(log.all == ["called", "released"])
    #expect(crl_signal_is_handled(signal) == 0)
  }
}
