// What the loop asks of the kernel and the allocator, counted by tools that watch from outside:
//
//     strace -f -c costs posts              blocks, posted by one thread to a loop that is held in a call-out
//     strace -f -c costs timers             a repeating timer
//     valgrind costs passes 1000            a source that signals itself; again with 2000: the allocations of a pass
//     valgrind costs observed-passes 1000   the same, with one observer of each of the six stages

import Glibc
import RunLoopCore
import Synchronization

func nanoseconds() -> Int {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return now.tv_sec * 1_000_000_000 + now.tv_nsec
}

func report(_ what: String, _ count: Int, _ start: Int) {
  let each = Double(nanoseconds() - start) / Double(count)
  print("\(what): \((each * 10).rounded() / 10) ns each")
}

/// Counts on the loop's thread.
final class Counter: Sendable {
  let value = Atomic<Int>(0)
  func add() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
}

nonisolated func onThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
  final class Work: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  pthread_create(
    &thread, nil,
    { pointer in
      if let pointer { Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue().body() }
      return nil
    }, Unmanaged.passRetained(Work(body)).toOpaque())
  return thread
}

nonisolated func posts(_ count: Int) {
  let loop = RunLoop.current
  let counter = Counter()
  loop.add(RunLoop.Source {}, forMode: .default)
  loop.perform {
    // The loop is held in this call-out until everything has been posted.
    let start = nanoseconds()
    let poster = onThread {
      for _ in 0..<count { loop.perform { if counter.add() == count { loop.stop() } } }
    }
    pthread_join(poster, nil)
    report("post", count, start)
  }
  let start = nanoseconds()
  print(loop.runUntilStopped(), counter.value.load(ordering: .relaxed))
  report("post and run", count, start)
}

nonisolated func timers(_ count: Int) {
  let loop = RunLoop.current
  let counter = Counter()
  loop.add(
    Timer(timeInterval: 0.0005, repeats: true) { _ in if counter.add() == count { loop.stop() } }, forMode: .default)
  print(loop.runUntilStopped(), counter.value.load(ordering: .relaxed))
}

nonisolated func passes(_ count: Int, observers: Bool) {
  let loop = RunLoop.current
  let counter = Counter()
  let itself = Mutex<RunLoop.Source?>(nil)
  let source = RunLoop.Source {
    if counter.add() == count { loop.stop() } else { itself.withLock { $0 }?.signal() }
  }
  itself.withLock { $0 = source }
  loop.add(source, forMode: .default)
  if observers {
    for activity: RunLoop.Activity in [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit] {
      loop.add(RunLoop.Observer(activities: activity) { _, _ in }, forMode: .default)
    }
  }
  source.signal()
  let start = nanoseconds()
  loop.runUntilStopped()
  report("pass", count, start)
  source.invalidate()
  itself.withLock { $0 = nil }
}

let arguments = CommandLine.arguments.dropFirst()
let count = arguments.dropFirst().first.flatMap { Int($0) }
switch arguments.first {
case "posts": posts(count ?? 100_000)
case "timers": timers(count ?? 1000)
case "passes": passes(count ?? 1_000_000, observers: false)
case "observed-passes": passes(count ?? 1_000_000, observers: true)
default: print("costs posts | timers | passes | observed-passes [COUNT]")
}
