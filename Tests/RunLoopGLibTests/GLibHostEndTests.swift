// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopGLib
import RunLoopThreads
import TestSupport
import Testing

@Suite("Attaching to and detaching from a GLib context", .timeLimit(.minutes(5)), .enabled(if: GLib.isInstalled))
struct GLibHostEndTests {
  @Test("attaching fails on a thread without a context of its own, or with a host already")
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

  @Test("a detached host serves nothing, and the loop can be run or attached again")
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

  @Test("a call-out may detach the host, even in a nested loop", arguments: [false, true])
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

  @Test("a thread may end while its host is attached, and another thread then runs the context")
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

  @Test("a poll function that another library has set is kept, before and after")
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
      // It replaces our poll function, which calls it from the next nested loop on.
      set(context.pointer, counting)
      let own = get(context.pointer)
      dialogue("second")
      #expect(log.text == "first second")
      #expect(waitCount > 0)
      host.detach()
      #expect(get(context.pointer) == own)
    }
  }

  @Test("a poll function that another library has set may still be called by ours")
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

  @Test("a nested loop that another thread quits at any moment leaves the run loop as it was")
  func endedFromOutside() throws {
    try onThread { context in
      let loop = RunLoop.current
      try GLibHost.attach()
      let count = Box(0)
      for _ in 0..<300 {
        let isOver = Box(false)
        let ender = Thread {
          // A new source changes the descriptors that GLib polls, and the loop is quit at once. A run that has not
          // begun yet is not ended.
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

/// The poll function that the test's own function calls; used by one thread.
private nonisolated(unsafe) var chained: GLib.Poll?

/// The number of times that a context has polled with the test's own function; used by one thread.
private nonisolated(unsafe) var waitCount = 0
