// SPDX-License-Identifier: Apache-2.0

// Measures the time from a thread to the main thread, which runs GLib's default context, and the context's turns on
// the way, including those that find nothing to do:
//
//     main-hops [ROUNDS]
//
// In turn: g_idle_add; a block of our main loop, and a main actor task, with that loop as a guest; such a task with a
// GLib timer that polls our main loop every 16 ms, as programs without a guest do. Nothing else happens on the main
// thread.

import Glibc
import RunLoopCore
import RunLoopGLib
import Synchronization

/// The GLib functions that are called.
struct GLib: @unchecked Sendable {
  // Sendable: written once.
  typealias Pointer = UnsafeMutableRawPointer
  typealias Source = @convention(c) (Pointer?) -> Int32

  let idleAdd: @convention(c) (Source, Pointer?) -> UInt32 = function("g_idle_add")
  let timeoutAdd: @convention(c) (UInt32, Source, Pointer?) -> UInt32 = function("g_timeout_add")
  let sourceRemove: @convention(c) (UInt32) -> Int32 = function("g_source_remove")
  let iterate: @convention(c) (Pointer?, Int32) -> Int32 = function("g_main_context_iteration")

  private static func function<Function>(_ name: String) -> Function {
    guard let library = dlopen("libglib-2.0.so.0", RTLD_NOW), let found = dlsym(library, name) else {
      fatalError("GLib has no \(name)")
    }
    return unsafeBitCast(found, to: Function.self)
  }
}

let glib = GLib()
let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 300

func nanoseconds() -> Int {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The state that the main thread writes and the other one waits for.
enum Hop {
  static let arrived = Atomic<Int>(0)
  static let isOver = Atomic(false)
  static let wakes = Atomic<Int>(0)

  static func arrive() { arrived.store(nanoseconds(), ordering: .releasing) }

  /// Makes hops from another thread, with pauses in which the main thread sleeps, and returns their durations.
  static func measure(_ send: @Sendable () -> Void) -> [Int] {
    var taken: [Int] = []
    for round in 0..<rounds {
      // Varies the phase of the polling timer.
      usleep(2000 + UInt32(round * 7919 % 16000))
      arrived.store(0, ordering: .relaxed)
      let start = nanoseconds()
      send()
      while arrived.load(ordering: .acquiring) == 0 { sched_yield() }
      taken.append(arrived.load(ordering: .relaxed) - start)
    }
    isOver.store(true, ordering: .releasing)
    _ = glib.idleAdd({ _ in 0 }, nil)
    return taken
  }
}

/// Runs GLib's default context on the main thread while another thread makes hops.
func run(_ name: String, _ send: @escaping @Sendable () -> Void) {
  final class Measured: Sendable { let values = Mutex<[Int]>([]) }
  let measured = Measured()
  Hop.isOver.store(false, ordering: .relaxed)
  var turns = 0
  var thread = pthread_t()
  let box = Unmanaged.passRetained(Body { measured.values.withLock { $0 = Hop.measure(send) } })
  pthread_create(&thread, nil, startBody, box.toOpaque())
  while !Hop.isOver.load(ordering: .acquiring) {
    _ = glib.iterate(nil, 1)
    turns += 1
  }
  pthread_join(thread, nil)
  let sorted = measured.values.withLock { $0 }.sorted()
  let columns = [50, 90, 99].map { "\(Double(sorted[min(sorted.count - 1, sorted.count * $0 / 100)] / 100) / 10)" }
  let turnsEach = (Double(turns) / Double(rounds) * 10).rounded() / 10
  print("| \(name) | \(columns.joined(separator: " | ")) | \(turnsEach) |")
}

final class Body: Sendable {
  let call: @Sendable () -> Void
  init(_ call: @escaping @Sendable () -> Void) { self.call = call }
}

nonisolated let startBody: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { body in
  if let body { Unmanaged<Body>.fromOpaque(body).takeRetainedValue().call() }
  return nil
}

print("| from a thread to the main thread | median, µs | 90 of 100 | 99 of 100 | turns of GLib's context for each |")
print("|---|---|---|---|---|")
run("`g_idle_add`") {
  _ = glib.idleAdd(
    { _ in
      Hop.arrive()
      return 0
    }, nil)
}
let host = try GLibHost.attach()
run("a block of the main loop, `GLibHost.attach()`") { RunLoop.main.perform { Hop.arrive() } }
run("a task of the main actor, `GLibHost.attach()`") { Task { @MainActor in Hop.arrive() } }
host.detach()
let timer = glib.timeoutAdd(
  16,
  { _ in
    RunLoop.main.run(mode: .default, for: .zero)
    return 1
  }, nil)
run("a task of the main actor, a timer of 16 ms that polls") { Task { @MainActor in Hop.arrive() } }
_ = glib.sourceRemove(timer)
