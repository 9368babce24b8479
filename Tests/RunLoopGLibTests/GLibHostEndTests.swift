// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopGLib
import RunLoopThreads
import TestSupport
import Testing

@Suite("How a run loop enters and leaves a context of GLib's", .timeLimit(.minutes(5)), .enabled(if: GLib.isInstalled))
struct GLibHostEndTests {
  @Test("a thread without a context of its own, or with a host already, gets an error")
  func errors() throws {
    let errors = Box<[GLibHostError]>([])
    @Sendable func attempt(_ context: UInt = 0) {
      let context = GLib.Pointer(bitPattern: context)
      do throws(GLibHostError) { try GLibHost.attach(to: context) } catch { errors.update { $0.append(error) } }
    }
    let thread = Thread { attempt() }
    try thread.tryStart()
    try thread.join()
    #expect(errors.value == [.noContext])
    try onThread { _ in
      try GLibHost.attach()
      attempt()
    }
    #expect(errors.value == [.noContext, .isAttached])
    try onThread { context in
      let acquire: @convention(c) (GLib.Pointer) -> Int32 = GLib.function("g_main_context_acquire")
      #expect(acquire(context.pointer) == 1)
      let pointer = UInt(bitPattern: context.pointer)
      let other = Thread { attempt(pointer) }
      try other.tryStart()
      try other.join()
    }
    #expect(errors.value == [.noContext, .isAttached, .contextIsBusy])
  }

  @Test("a host that is detached serves no more, and the loop can be run or attached again")
  func detach() throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      let host = try GLibHost.attach()
      loop.perform { log.write("served") }
      GLib.iterate(context.pointer)
      host.detach()
      host.detach()
      #expect(GLibHost.current == nil)
      loop.perform { log.write("run") }
      for _ in 0..<3 { GLib.iterate(context.pointer, waits: false) }
      log.write("|")
      loop.run(mode: .default, for: .zero)
      try GLibHost.attach()
      loop.perform { log.write("again") }
      for _ in 0..<3 { GLib.iterate(context.pointer, waits: false) }
      #expect(log.text == "served | run again")
    }
  }

  @Test("a call-out may detach the host, in a dialogue too", arguments: [false, true])
  func detachInside(isInDialogue: Bool) throws {
    try onThread { context in
      let log = Log()
      let loop = RunLoop.current
      let host = try GLibHost.attach()
      loop.perform {
        log.write("out")
        if isInDialogue {
          loop.perform {
            host.detach()
            context.quit()
          }
          context.run()
        } else {
          host.detach()
        }
        context.quit()
      }
      context.run()
      #expect(GLibHost.current == nil)
      loop.perform { log.write("by itself") }
      loop.run(mode: .default, for: .zero)
      #expect(log.text == "out by itself")
    }
  }

  @Test("the thread may end with a host, and another thread runs the context after it")
  func threadEnds() throws {
    let left = Box<UInt>(0)
    let host = Box(WeakBox<GLibHost>(nil))
    let loop = Box(WeakBox<RunLoop>(nil))
    try onThread { context in
      host.value = WeakBox(try GLibHost.attach())
      loop.value = WeakBox(RunLoop.current)
      let pop: @convention(c) (GLib.Pointer) -> Void = GLib.function("g_main_context_pop_thread_default")
      pop(context.pointer)
      left.value = UInt(bitPattern: context.pointer)
    }
    let pointer = try #require(GLib.Pointer(bitPattern: left.value))
    for _ in 0..<3 { GLib.iterate(pointer, waits: false) }
    let unref: @convention(c) (GLib.Pointer) -> Void = GLib.function("g_main_context_unref")
    unref(pointer)
    waitUntil { host.value.object == nil && loop.value.object == nil }
  }

  @Test("somebody else's way of waiting is kept, before and after")
  func pollFunctions() throws {
    try onThread { context in
      let set: @convention(c) (GLib.Pointer, GLib.Poll?) -> Void = GLib.function("g_main_context_set_poll_func")
      let get: @convention(c) (GLib.Pointer) -> UnsafeRawPointer? = GLib.function("g_main_context_get_poll_func")
      let counting: GLib.Poll = { entries, count, milliseconds in
        waitCount += 1
        let poll: GLib.Poll = GLib.function("g_poll")
        return poll(entries, count, milliseconds)
      }
      let log = Log()
      let loop = RunLoop.current
      let host = try GLibHost.attach()
      @Sendable func dialogue(_ name: String) {
        loop.perform {
          loop.schedule(in: .milliseconds(1)) { _ in
            log.write(name)
            context.quit()
          }
          context.run()
          context.quit()
        }
        context.run()
      }
      dialogue("first")
      // It replaces ours, and is called by it from the next dialogue on.
      set(context.pointer, counting)
      let own = get(context.pointer)
      dialogue("second")
      #expect(log.text == "first second")
      #expect(waitCount > 0)
      host.detach()
      #expect(get(context.pointer) == own)
    }
  }

  @Test("somebody else's way of waiting may end in ours")
  func chainedPollFunctions() throws {
    try onThread { context in
      let set: @convention(c) (GLib.Pointer, GLib.Poll?) -> Void = GLib.function("g_main_context_set_poll_func")
      let get: @convention(c) (GLib.Pointer) -> UnsafeRawPointer = GLib.function("g_main_context_get_poll_func")
      let log = Log()
      let loop = RunLoop.current
      try GLibHost.attach()
      for number in 0..<3 {
        loop.perform {
          loop.schedule(in: .milliseconds(1)) { _ in
            log.write("\(number)")
            context.quit()
          }
          context.run()
          context.quit()
        }
        context.run()
        if number == 0 {
          chained = unsafeBitCast(get(context.pointer), to: GLib.Poll.self)
          set(context.pointer) { entries, count, milliseconds in chained?(entries, count, milliseconds) ?? -1 }
        }
      }
      #expect(log.text == "0 1 2")
    }
  }

  @Test("a dialogue that another thread ends at any moment leaves the loop as it was")
  func endedFromOutside() throws {
    try onThread { context in
      let loop = RunLoop.current
      try GLibHost.attach()
      let count = Box(0)
      for _ in 0..<300 {
        let isOver = Box(false)
        let ender = Thread {
          // A new source changes what is waited for, and the loop is ended at once. One that has yet to begin is not
          // ended.
          while !isOver.value {
            context.add { false }
            context.quit(depth: 2)
            sched_yield()
          }
        }
        try ender.tryStart()
        loop.perform {
          context.run()
          isOver.value = true
          count.update { $0 += 1 }
          loop.perform { context.quit() }
        }
        context.run()
        try ender.join()
      }
      #expect(count.value == 300)
    }
  }

}

/// What a function of the test's calls; one thread's.
private nonisolated(unsafe) var chained: GLib.Poll?

/// How often a context has waited by a function of the test's; one thread's.
private nonisolated(unsafe) var waitCount = 0
