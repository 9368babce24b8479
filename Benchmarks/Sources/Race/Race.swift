// SPDX-License-Identifier: Apache-2.0

import CRace
import Glibc

/// Runs the workload that the command line names, and ends the process.
///
/// It has a thread of its own: the main thread's loop is another in all that have one, as it serves the main dispatch
/// queue.
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
      // Loops and their threads end with the process: what is measured has been.
      fflush(nil)
      _exit(0)
    }
    while true { pause() }
  }
  race_check(false, "no such workload")
  _exit(1)
}

/// A closure on its way through C.
private final class Body<Argument>: Sendable {
  let run: @Sendable (Argument) -> Void
  init(_ run: @escaping @Sendable (Argument) -> Void) { self.run = run }
}

/// Runs a closure on a thread of its own.
public func onThread(_ body: @escaping @Sendable () -> Void) {
  race_thread(
    { pointer in
      guard let pointer else { return }
      Unmanaged<Body<Void>>.fromOpaque(pointer).takeRetainedValue().run(())
    }, Unmanaged.passRetained(Body<Void> { body() }).toOpaque())
}

/// W1 and W2: lets threads call `produce` with their share of `count` posts, and tells the time for each.
public func racePosts(producers: Int32, _ count: Int64, produce: @escaping @Sendable (Int64) -> Void) {
  let body = Body(produce)
  race_posts(producers, count, runCounted, Unmanaged.passUnretained(body).toOpaque())
  withExtendedLifetime(body) {}
}

/// W3, W4, W8: calls `begin`, which starts something that is to run `count` times, and tells the time for each.
public func raceTurns(_ metric: String, _ count: Int64, begin: @escaping @Sendable (Int64) -> Void) {
  let body = Body(begin)
  race_turns(metric, count, runCounted, Unmanaged.passUnretained(body).toOpaque())
  withExtendedLifetime(body) {}
}

/// L1: calls `post`, which lets a loop call `race_wait_over()`, in many rhythms.
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

/// What closures that capture an object capture, with a number beside it.
///
/// A closure that captures one object and nothing else needs no context of its own, and most closures are not so lucky.
public final class Counted: @unchecked Sendable {
  // Sendable: what it points to is touched by the loop's thread only.
  @usableFromInline let sum: UnsafeMutablePointer<Int64>

  /// Makes one that has counted nothing.
  public init() {
    sum = .allocate(capacity: 1)
    sum.initialize(to: 0)
  }

  /// What the closure does.
  @inlinable
  public func run(_ number: Int64) {
    sum.pointee += number
    race_run_one()
  }
}

/// One thread waits until another opens it.
public final class Gate: @unchecked Sendable {
  // Sendable: a semaphore of the C library, which lives as long as the process.
  private let gate = race_gate_make()

  /// Makes a closed one.
  public init() {}

  /// Lets one wait be over.
  public func open() { race_gate_open(gate) }

  /// Waits until it is opened, and closes it.
  public func wait() { race_gate_wait(gate) }
}

/// Hands something from one thread to another, once.
public final class Handed<Value>: @unchecked Sendable {
  // Sendable: the gate orders the two threads.
  private let gate = Gate()
  private var value: Value?

  /// Makes one that has nothing yet.
  public init() {}

  /// Hands it over.
  public func give(_ value: Value) {
    self.value = value
    gate.open()
  }

  /// Waits for it.
  public func take() -> Value {
    gate.wait()
    guard let value else { fatalError("nothing was handed over") }
    return value
  }
}
