// SPDX-License-Identifier: Apache-2.0

// The loop's use of the kernel and the allocator, counted by external tools:
//
//     strace -f -c costs posts              blocks, posted by one thread to a loop that is held in a call-out
//     strace -f -c costs timers             a repeating timer
//     valgrind costs passes 1000            a source that signals itself; again with 2000: the allocations of a pass
//     valgrind costs observed-passes 1000   the same, with one observer of each of the six activities
//     valgrind --tool=callgrind costs moves 100000       moves the dates of 10,000 timers; again with 200000
//     valgrind --tool=callgrind costs removals 100000    removes, moves and adds one of 100,000 timers
//     valgrind --tool=callgrind costs makes 100000       invalidates one of 100,000 timers, and adds a new one
//     valgrind --tool=callgrind costs schedules 100000   the same, with `schedule(in:)`
//     valgrind --tool=callgrind costs requests 100000    schedules and ends a timer beside 100,000 others
//     valgrind --tool=callgrind costs shots 100000       creates timers that fire once within a tenth of a second
//     valgrind --tool=callgrind costs pairs 100000       moves, adds and removes a timer beside 100,000 others
//     valgrind --tool=callgrind costs reads 20000        a descriptor that is ready in each pass
//     valgrind --tool=callgrind costs waits 10000        runs work on a resident thread, and waits for it
//     valgrind --tool=callgrind costs answers 10000      the same with a post and a semaphore
//     costs descriptors                     prints `ls -l /proc/PID/fd` for idle, watching and ended loops

import Glibc
import RunLoopCore
import Synchronization

func nanoseconds() -> Int { nanoseconds(CLOCK_MONOTONIC) }
func processorNanoseconds() -> Int { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

private func nanoseconds(_ clock: clockid_t) -> Int {
  var now = timespec()
  clock_gettime(clock, &now)
  return now.tv_sec * 1_000_000_000 + now.tv_nsec
}

func report(_ what: String, _ count: Int, _ start: Int, now: Int = nanoseconds()) {
  let each = Double(now - start) / Double(count)
  print("\(what): \((each * 10).rounded() / 10) ns each")
}

/// A count on the loop's thread.
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
    // This call-out holds the loop until everything has been posted.
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

nonisolated func reads(_ count: Int) {
  let loop = RunLoop.current
  let counter = Counter()
  var ends: [Int32] = [0, 0]
  pipe(&ends)
  close(ends[1])
  let source = RunLoop.DescriptorSource(descriptor: ends[0], events: .readable) { _, _ in
    if counter.add() == count { loop.stop() }
  }
  do { try loop.add(source, forMode: .default) } catch { print(error) }
  let start = nanoseconds()
  loop.runUntilStopped()
  report("pass that serves a descriptor", count, start)
}

nonisolated func descriptors(_ count: Int) {
  func list(_ title: String) {
    print("\(title):")
    fflush(nil)
    system("ls -l /proc/\(getpid())/fd | awk 'NR > 1 { print \"  \", $9, $10, $11 }'")
  }
  func waitUntilAsleep(_ loop: RunLoop) { while !loop.isWaiting { sched_yield() } }
  func runningLoop() -> (loop: RunLoop, thread: pthread_t) {
    let box = Made()
    let thread = onThread {
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      box.loop.withLock { $0 = loop }
      loop.runUntilStopped()
    }
    while true { if let loop = box.loop.withLock({ $0 }) { return (loop, thread) } else { sched_yield() } }
  }
  list("before")
  let idle = (0..<100).map { _ in runningLoop() }
  for running in idle { waitUntilAsleep(running.loop) }
  list("100 idle loops")
  let watching = idle[0].loop
  let source = RunLoop.DescriptorSource(descriptor: STDIN_FILENO, events: .readable) { _, _ in }
  do { try watching.add(source, forMode: .default) } catch { print(error) }
  list("one of them watches a descriptor")
  source.invalidate()
  for running in idle { running.loop.stop() }
  for running in idle { pthread_join(running.thread, nil) }
  for _ in 0..<count {
    let thread = onThread {
      let source = RunLoop.DescriptorSource(descriptor: STDIN_FILENO, events: .readable) { _, _ in }
      do { try RunLoop.current.add(source, forMode: .default) } catch { print(error) }
      RunLoop.current.run(mode: .default, for: 0)
    }
    pthread_join(thread, nil)
  }
  list("\(count) loops that watched have come and gone")
}

/// Hands a loop from its thread to another.
final class Made: Sendable {
  let loop = Mutex<RunLoop?>(nil)
}

/// Runs a body on another thread, because the main loop serves the main dispatch queue in every pass.
nonisolated func onOtherThread(_ body: @escaping @Sendable () -> Void) { pthread_join(onThread(body), nil) }

let arguments = CommandLine.arguments.dropFirst()
let mode = arguments.first ?? ""
let count = arguments.dropFirst().first.flatMap { Int($0) }
switch mode {
case "posts": onOtherThread { posts(count ?? 100_000) }
case "timers": onOtherThread { timers(count ?? 1000) }
case "passes": onOtherThread { passes(count ?? 1_000_000, observers: false) }
case "observed-passes": onOtherThread { passes(count ?? 1_000_000, observers: true) }
case "shots": onOtherThread { shots(count ?? 100_000) }
case "reads": onOtherThread { reads(count ?? 100_000) }
case "waits": waits(count ?? 10_000)
case "answers": answers(count ?? 10_000)
case "descriptors": descriptors(count ?? 1000)
default:
  if let work = TimerWork(rawValue: mode) {
    onOtherThread { liveTimers(count ?? 1_000_000, among: work == .moves ? 10_000 : 100_000, work) }
    break
  }
  let programs = "posts | timers | passes | observed-passes | moves | removals | makes | schedules | requests | pairs"
  print("costs \(programs) | shots | reads | waits | answers | descriptors [COUNT]")
}
