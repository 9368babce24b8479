// SPDX-License-Identifier: Apache-2.0

import CRace
import Glibc

/// Runs the workload named on the command line, and exits the process.
///
/// The workload has a separate thread, because a main thread's loop also serves the main dispatch queue.
public func race(_ peer: String, _ workloads: KeyValuePairs<String, @Sendable () -> Void>) -> Never {
  let name = strdup(peer)
  race_begin(CommandLine.argc, CommandLine.unsafeArgv, name)
  if CommandLine.arguments.contains("--list") {
    for (name, _) in workloads { print(name) }
    exit(0)
  }
  for (name, run) in workloads where race_is(name) {
    onThread {
      run()
      // The process ends without cleaning up its loops and threads, as the measurement is complete.
      fflush(nil)
      _exit(0)
    }
    while true { pause() }
  }
  race_check(false, "no such workload")
  _exit(1)
}

/// A box that passes a closure through C.
private final class Body<Argument>: Sendable {
  let run: @Sendable (Argument) -> Void
  init(_ run: @escaping @Sendable (Argument) -> Void) { self.run = run }
}

/// Runs a closure on a new thread.
public func onThread(_ body: @escaping @Sendable () -> Void) {
  race_thread(
    { pointer in
      guard let pointer else { return }
      Unmanaged<Body<Void>>.fromOpaque(pointer).takeRetainedValue().run(())
    }, Unmanaged.passRetained(Body<Void> { body() }).toOpaque())
}

/// W1 and W2: makes threads call `produce` with their share of `count` posts, and reports the time for each.
public func racePosts(producers: Int32, _ count: Int64, produce: @escaping @Sendable (Int64) -> Void) {
  let body = Body(produce)
  race_posts(producers, count, runCounted, Unmanaged.passUnretained(body).toOpaque())
  withExtendedLifetime(body) {}
}

/// W3, W4, W8: calls `begin`, which starts something that runs `count` times, and reports the time for each.
public func raceTurns(_ metric: String, _ count: Int64, begin: @escaping @Sendable (Int64) -> Void) {
  let body = Body(begin)
  race_turns(metric, count, runCounted, Unmanaged.passUnretained(body).toOpaque())
  withExtendedLifetime(body) {}
}

/// L1: calls `post`, after which the loop calls `race_wait_over()`, in many rhythms.
public func raceWaits(post: @escaping @Sendable () -> Void) {
  let body = Body<Void> { post() }
  race_waits(
    { body in
      guard let body else { return }
      Unmanaged<Body<Void>>.fromOpaque(body).takeUnretainedValue().run(())
    }, Unmanaged.passUnretained(body).toOpaque())
  withExtendedLifetime(body) {}
}

private func runCounted(_ count: Int64, _ body: UnsafeMutableRawPointer?) {
  guard let body else { return }
  Unmanaged<Body<Int64>>.fromOpaque(body).takeUnretainedValue().run(count)
}

/// The object that capturing closures capture, together with a number.
///
/// A closure that captures a single object needs no context, which is not typical.
public final class Counted: @unchecked Sendable {
  // Sendable: only the loop's thread accesses the memory.
  @usableFromInline let sum: UnsafeMutablePointer<Int64>

  /// Creates a counter of zero.
  public init() {
    sum = .allocate(capacity: 1)
    sum.initialize(to: 0)
  }

  /// The work of the closure.
  @inlinable
  public func run(_ number: Int64) {
    sum.pointee += number
    race_run_one()
  }
}

/// Lets one thread wait until another opens the gate.
public final class Gate: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let gate = race_gate_make()

  /// Creates a closed gate.
  public init() {}

  /// Opens the gate for one wait.
  public func open() { race_gate_open(gate) }

  /// Waits until the gate is opened, and closes it.
  public func wait() { race_gate_wait(gate) }
}

/// Hands one value from one thread to another.
public final class Handed<Value>: @unchecked Sendable {
  // Sendable: the gate orders the two threads.
  private let gate = Gate()
  private var value: Value?

  /// Creates an empty hand-over.
  public init() {}

  /// Stores the value.
  public func give(_ value: Value) {
    self.value = value
    gate.open()
  }

  /// Waits for the value.
  public func take() -> Value {
    gate.wait()
    guard let value else { fatalError("nothing was handed over") }
    return value
  }
}
