import CRace
import Glibc

/// Runs the workload that the command line names, and ends the process.
///
/// It has a thread of its own: the main thread's loop is another in all that have one, as it serves the main dispatch queue.
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

private func runCounted(_ count: Int64, _ body: UnsafeMutableRawPointer?) {
  guard let body else { return }
  Unmanaged<Body<Int64>>.fromOpaque(body).takeUnretainedValue().run(count)
}

/// What closures that capture an object capture.
public final class Counted: @unchecked Sendable {
  // Sendable: what it points to is touched by the loop's thread only.
  @usableFromInline let ran: UnsafeMutablePointer<Int>

  public init() {
    ran = .allocate(capacity: 1)
    ran.initialize(to: 0)
  }

  @inlinable
  public func run() {
    ran.pointee += 1
    race_run_one()
  }
}

/// One thread waits until another opens it.
public final class Gate: @unchecked Sendable {
  // Sendable: a semaphore of the C library, which lives as long as the process.
  private let gate = race_gate_make()

  public init() {}

  public func open() { race_gate_open(gate) }
  public func wait() { race_gate_wait(gate) }
}

/// Hands something from one thread to another, once.
public final class Handed<Value>: @unchecked Sendable {
  // Sendable: the gate orders the two threads.
  private let gate = Gate()
  private var value: Value?

  public init() {}

  public func give(_ value: Value) {
    self.value = value
    gate.open()
  }

  public func take() -> Value {
    gate.wait()
    guard let value else { fatalError("nothing was handed over") }
    return value
  }
}

/// W6 and W7: counts operations until there are enough, or a second is over.
///
/// Nobody waits in them, so that processor time tells it: what else runs on the machine disturbs it less.
public struct Stopwatch {
  private let count: Int64
  private let before = race_now()
  private let cpuBefore = race_cpu()
  private var done: Int64 = 0

  public init(_ count: Int64) { self.count = race_scaled(count, 1000) }

  /// Runs `operation` in batches, and gives the nanoseconds for each.
  @inlinable
  public static func time(_ count: Int64, batch: Int = 1000, _ operation: () -> Void) -> Double {
    var watch = Stopwatch(count)
    repeat { for _ in 0..<batch { operation() } } while !watch.isEnough(batch)
    return watch.each
  }

  @usableFromInline
  mutating func isEnough(_ batch: Int) -> Bool {
    done += Int64(batch)
    return done >= count || race_now() - before > race_scaled(1_000_000_000, 10_000_000)
  }

  @usableFromInline var each: Double { Double(race_cpu() - cpuBefore) / Double(done) }
}

/// The random dates of the timers' workloads: the same for everybody.
public struct RandomDates {
  @usableFromInline var state: UInt64

  @inlinable
  public init() { state = 0x9e37_79b9_7f4a_7c15 }

  @inlinable
  public mutating func index(_ count: Int64) -> Int { Int(race_random(&state) % UInt64(count)) }

  /// Nanoseconds within a span.
  @inlinable
  public mutating func within(_ span: Int64) -> Int64 { Int64(race_random(&state) % UInt64(span)) }

  /// Between one and two minutes, in nanoseconds.
  @inlinable
  public mutating func far() -> Int64 { 60_000_000_000 + within(60_000_000_000) }
}

/// W5: what is known when all timers have fired.
public struct OneShots {
  public let count: Int64
  public let span: Int64
  private let cpu = race_cpu()
  private var begin: Int64 = 0
  private var created: Int64 = 0
  private var last: Int64 = 0

  public init(_ full: Int64) {
    count = race_scaled(full, 1000)
    span = race_scaled(2_000_000_000, 20_000_000)
  }

  /// Calls `create` with each timer's nanoseconds from now.
  public mutating func create(_ create: (Int64) -> Void) {
    var random = RandomDates()
    begin = race_now()
    for _ in 0..<count {
      let delay = random.within(span)
      last = max(last, delay)
      create(delay)
    }
    created = race_now()
  }

  /// Reports, once the last has fired at `end`.
  public func report(end: Int64) {
    race_report("processor time per timer", Double(race_cpu() - cpu) / Double(count), "ns")
    race_report("creation", Double(created - begin) / Double(count), "ns")
    race_report("the last is late", Double(end - begin - last) / 1e6, "ms")
  }
}

/// W9: a thousand pairs of sockets, of which a hundred are active.
///
/// An event reads a byte and writes the next pair's. In processor time, as nobody waits.
public final class Pairs: @unchecked Sendable {
  // Sendable: used by the loop's thread only, while it runs.
  public static let count = 1000
  private static let active = 100
  private let pairs = race_socket_pairs(Int32(Pairs.count))
  private var toWrite: Int64 = 0
  private var toRead: Int64 = 0

  public init() {}

  public func descriptor(_ pair: Int) -> Int32 { pairs![2 * pair] }

  private func write(_ pair: Int) {
    toWrite -= 1
    race_check(Glibc.write(pairs![2 * pair + 1], "e", 1) == 1, "a byte did not fit")
  }

  /// A descriptor is ready; true: this was the last event.
  public func ready(_ pair: Int) -> Bool {
    var byte: UInt8 = 0
    race_check(read(pairs![2 * pair], &byte, 1) == 1, "a descriptor was not ready")
    if toWrite > 0 { write((pair + 1) % Pairs.count) }
    toRead -= 1
    return toRead == 0
  }

  /// Makes `full` events, each round with `run`, which returns after the last one; reports the time for each.
  public func race(_ full: Int64, run: () -> Void) {
    let count = race_scaled(full, 1000)
    _ = round(count / 20, run)
    race_report("event", Double(round(count, run)) / Double(count), "ns")
  }

  private func round(_ count: Int64, _ run: () -> Void) -> Int64 {
    toWrite = count
    toRead = count
    let before = race_cpu()
    for pair in stride(from: 0, to: Pairs.count, by: Pairs.count / Pairs.active) { write(pair) }
    run()
    return race_cpu() - before
  }
}

/// W12: what each of `count` things costs that `make` makes.
public func raceMemory(timers count: Int64, _ make: (Int64) -> Void) {
  let count = race_scaled(count, 1000)
  let before = race_heap()
  make(count)
  race_report("bytes per timer", Double(race_heap() - before) / Double(count), "B")
}

/// W12: what each of 200 idle loops costs that `start` starts.
public func raceMemory(loops start: () -> Void) {
  let count = 200.0
  start()
  race_settle()
  let (resident, heap, descriptors) = (race_resident(), race_heap(), race_descriptors())
  for _ in 0..<Int(count) { start() }
  race_settle()
  race_report("bytes in memory per idle loop and its thread", Double(race_resident() - resident) / count, "B")
  race_report("bytes of heap per idle loop", Double(race_heap() - heap) / count, "B")
  race_report("descriptors per loop", Double(race_descriptors() - descriptors) / count, "")
}
