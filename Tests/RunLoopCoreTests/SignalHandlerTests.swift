// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

// Used by the handlers, so created before the first signal.
nonisolated(unsafe) private var interrupted: Unmanaged<RunLoop>?
private let handled = Atomic<Int>(0)
private let changedErrors = Atomic<Int>(0)

/// Installs handlers that stop a loop on `SIGUSR1` and wake it up on `SIGUSR2`; the loop is never released.
private func handleSignals(by loop: RunLoop) {
  interrupted = .passRetained(loop)
  _ = handled.load(ordering: .relaxed) + changedErrors.load(ordering: .relaxed)
  takeSignals()
  for number in [SIGUSR1, SIGUSR2] {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { number in
      let before = errno
      errno = 12_345
      interrupted?._withUnsafeGuaranteedRef { if number == SIGUSR1 { $0.stop() } else { $0.wakeUp() } }
      if errno != 12_345 { changedErrors.wrappingAdd(1, ordering: .relaxed) }
      handled.wrappingAdd(1, ordering: .relaxed)
      errno = before
    }
    sigaction(number, &action, nil)
  }
}

/// Unblocks the signals on the calling thread, because Dispatch's threads block them.
private func takeSignals() {
  var none = sigset_t()
  sigemptyset(&none)
  pthread_sigmask(SIG_SETMASK, &none, nil)
}

/// Each test needs its own process, because its signals must not reach other tests.
@Suite("A stop and a wake-up in a signal handler", .timeLimit(.minutes(20)))
struct SignalHandlerTests {
  @Test("a stop and a wake-up in a signal handler return even if the interrupted thread holds a loop's lock")
  func underLocks() async {
    await #expect(processExitsWith: .success) {
      let loop = RunLoop.current
      handleSignals(by: loop)
      loop.keepAlive()
      loop.once(.beforeSources) {
        loop.table.withLock { _ in
          raise(SIGUSR1)
          raise(SIGUSR2)
        }
      }
      #expect(loop.run(mode: .default, for: Duration.seconds(1_000_000)) == .stopped)
      #expect(handled.load(ordering: .relaxed) == 2 && changedErrors.load(ordering: .relaxed) == 0)
    }
  }

  @Test("a signal handler on any thread stops a loop that sleeps on its word, in an epoll set or in another loop")
  func asleep() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      for sleeper in [WakeState.Sleeper.futex, .epoll] {
        let running = RunningLoop { loop, _ in
          if sleeper == .epoll { loop.watch(pipe.reading) } else { loop.keepAlive() }
        }
        handleSignals(by: running.loop)
        running.loop.awaitSleep(sleeper)
        raise(SIGUSR2)
        running.loop.awaitSleep(sleeper)
        raise(SIGUSR1)
        #expect(running.result() == "stopped")
      }
      #expect(changedErrors.load(ordering: .relaxed) == 0)
    }
  }

  @Test("a stop or wake-up in a signal handler makes a guest's descriptor readable until it is served")
  func guest() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      let loop = RunLoop.current
      handleSignals(by: loop)
      loop.keepAlive()
      for isWatching in [false, true] {
        let source = isWatching ? loop.watch(pipe.reading) : nil
        let guest = try RunLoop.Guest()
        func isReadable() -> Bool {
          var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
          return poll(&entry, 1, 0) > 0
        }
        while isReadable() { guest.service() }
        for _ in 0..<3 {
          raise(SIGUSR1)
          #expect(isReadable())
          #expect(guest.service() == .stopped)
          while isReadable() { guest.service() }
          loop.table.withLock { _ in _ = raise(SIGUSR2) }
          #expect(isReadable())
          #expect(guest.service() == .timedOut)
          while isReadable() { guest.service() }
        }
        guest.invalidate()
        source?.invalidate()
      }
      #expect(changedErrors.load(ordering: .relaxed) == 0)
    }
  }

  @Test("20 000 signals on the loop's thread and on a thread that uses the loop make neither hang")
  func storm() async {
    await #expect(processExitsWith: .success) {
      let pipe = try RawPipe()
      let loop = RunLoop.current
      handleSignals(by: loop)
      loop.keepAlive()
      let here = pthread_self()
      let isOver = Atomic<Bool>(false)
      let ready = Box<pthread_t?>(nil)
      let poster = startThread {
        takeSignals()
        ready.value = pthread_self()
        while !isOver.load(ordering: .relaxed) {
          loop.perform {}
          let timer = Timer(timeInterval: 9, repeats: true) { _ in }
          loop.add(timer, forMode: .common)
          timer.invalidate()
        }
      }
      let sender = startThread {
        var other: pthread_t?
        while other == nil { other = ready.value }
        for number in 0..<20_000 {
          pthread_kill(number % 4 < 2 ? here : other ?? here, number % 2 == 0 ? SIGUSR1 : SIGUSR2)
          // A signal that is still pending would absorb the next one.
          if number % 8 == 0 { sched_yield() }
        }
        isOver.store(true, ordering: .relaxed)
        loop.stopForGood()
      }
      var watched: RunLoop.DescriptorSource?
      while !isOver.load(ordering: .relaxed) {
        loop.run(mode: .default, for: Duration.seconds(1_000_000))
        // Alternates between the word and an epoll set.
        if let source = watched {
          source.invalidate()
          watched = nil
        } else {
          watched = loop.watch(pipe.reading)
        }
      }
      sender.result()
      poster.result()
      #expect(handled.load(ordering: .relaxed) > 0 && changedErrors.load(ordering: .relaxed) == 0)
    }
  }
}
