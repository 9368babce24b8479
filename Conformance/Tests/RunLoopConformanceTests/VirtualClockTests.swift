// SPDX-License-Identifier: Apache-2.0

import CVirtualCalls
import CoreFoundation
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import RunLoopConformance

@Suite("Virtual time for Core Foundation", .timeLimit(.minutes(20)))
struct VirtualClockTests {
  /// Runs `body` on a thread that has joined a clock.
  private func onClock<Result: Sendable>(_ body: @escaping @Sendable (VirtualClock) -> Result) -> Result? {
    let clock = VirtualClock()
    let result = Mutex<Result?>(nil)
    let thread = ProgramThread {
      clock.join()
      let answer = body(clock)
      result.withLock { $0 = answer }
    }
    #expect(thread.end())
    return withExtendedLifetime(clock) { result.withLock { $0 } }
  }

  private static func read(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  @Test("all wall clocks are stopped until they are advanced together")
  func together() {
    let differences = onClock { clock in
      let before = [Self.read(CLOCK_REALTIME), Self.read(CLOCK_MONOTONIC), CFAbsoluteTimeGetCurrent()]
      clock.advance(by: 7)
      let after = [Self.read(CLOCK_REALTIME), Self.read(CLOCK_MONOTONIC), CFAbsoluteTimeGetCurrent()]
      return zip(before, after).map { $1 - $0 }
    }
    #expect(differences == [7, 7, 7])
  }

  @Test("processor-time clocks are unaffected")
  func cpuTime() {
    let isReal = onClock { clock in
      let before = Self.read(CLOCK_THREAD_CPUTIME_ID)
      clock.advance(by: 1000)
      return before >= 0 && Self.read(CLOCK_THREAD_CPUTIME_ID) < 1000
    }
    #expect(isReal == true)
  }

  @Test("threads that have not joined see the real time")
  func others() {
    let virtual = onClock { _ in Self.read(CLOCK_REALTIME) } ?? 0
    // The two times are years apart.
    #expect(abs(Self.read(CLOCK_REALTIME) - virtual) > 1e6)
    #expect(abs(Self.read(CLOCK_REALTIME) - Double(time(nil))) < 5)
  }

  @Test("each clock has its own time")
  func several() {
    let ticks = onClock { outer in
      outer.advance(by: 3)
      let inner = self.onClock { inner in
        inner.advance(by: 5)
        return inner.tick
      }
      return [outer.tick, inner ?? 0]
    }
    #expect(ticks == [3, 5])
  }

  @Test("Core Foundation's loop and Dispatch's timers are unaffected on threads that have not joined")
  func realTime() {
    let fired = DispatchSemaphore(value: 0)
    let thread = ProgramThread {
      let date = CFAbsoluteTimeGetCurrent() + 0.01
      let timer = CFRunLoopTimerCreateWithHandler(nil, date, 0, 0, 0) { _ in fired.signal() }
      CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
      // The run ends with the timer, as nothing is left then.
      let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, false)
      if result == .finished { fired.signal() }
    }
    #expect(thread.end())
    #expect(fired.wait(timeout: .now()) == .success)
    #expect(fired.wait(timeout: .now()) == .success)

    let source = DispatchSource.makeTimerSource()
    source.schedule(deadline: .now() + .milliseconds(5))
    source.setEventHandler { fired.signal() }
    source.activate()
    fired.wait()
  }

  @Test("Dispatch works on a thread that has joined")
  func dispatch() {
    let ran = onClock { _ in
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global().async { done.signal() }
      done.wait()
      return true
    }
    #expect(ran == true)
  }

  /// Finds a system call by its name, as another library would.
  private static func find<Function>(_ name: String, as type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
  }

  @Test("a timer set to a past time is ready immediately; a disarmed one reports nothing")
  func timerDescriptors() {
    typealias Create = @convention(c) (clockid_t, Int32) -> Int32
    typealias SetTime =
      @convention(c) (Int32, Int32, UnsafePointer<itimerspec>?, UnsafeMutablePointer<itimerspec>?) -> Int32
    guard let create = Self.find("timerfd_create", as: Create.self),
      let setTime = Self.find("timerfd_settime", as: SetTime.self)
    else {
      Issue.record("a call is not to be found")
      return
    }
    let base = Int(cvc_clock_monotonic_base())
    let counts = onClock { clock in
      let timer = create(CLOCK_MONOTONIC, 0)
      defer { close(timer) }
      var counts: [UInt64] = []
      func count() {
        var count: UInt64 = 0
        _ = Glibc.read(timer, &count, 8)
        counts.append(count)
      }
      func set(_ seconds: Int, absolute: Bool) {
        var value = itimerspec()
        value.it_value.tv_sec = seconds
        _ = setTime(timer, absolute ? 1 : 0, &value, nil)
      }
      set(base - 1, absolute: true)
      count()
      set(4, absolute: false)
      count()
      clock.advance(by: 3)
      count()
      clock.advance(by: 1)
      count()
      set(2, absolute: false)
      clock.advance(by: 2)
      set(0, absolute: false)
      count()
      clock.advance(by: 10)
      count()
      return counts
    }
    #expect(counts == [1, 0, 0, 1, 0, 0])
  }

  @Test("a wait with a timeout takes that time on the virtual clock")
  func timeout() {
    typealias Poll =
      @convention(c) (UnsafeMutableRawPointer?, UInt, UnsafePointer<timespec>?, UnsafeRawPointer?) -> Int32
    guard let poll = Self.find("ppoll", as: Poll.self) else {
      Issue.record("a call is not to be found")
      return
    }
    let ticks = onClock { clock in
      var seconds = timespec(tv_sec: 6, tv_nsec: 0)
      return [Int(poll(nil, 0, &seconds, nil)), clock.tick]
    }
    #expect(ticks == [0, 6])
  }
}
