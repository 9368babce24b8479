// SPDX-License-Identifier: Apache-2.0

import CCounts
import Glibc
import RunLoopCore
import RunLoopThreads

/// Lets one thread wait for another.
final class Signal: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func send() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}

/// The object that closures capture.
final class Object: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private var touched = 0

  func touch(_ number: Int = 1) { touched &+= number }
}

private final class Body: Sendable {
  let run: @Sendable () -> Void
  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

private func onThread(_ body: @escaping @Sendable () -> Void) {
  var thread = pthread_t()
  let failure = pthread_create(
    &thread, nil,
    { pointer in
      if let pointer { Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run() }
      return nil
    }, Unmanaged.passRetained(Body(body)).toOpaque())
  if failure != 0 { fail("no thread") }
}

/// Runs `body` on a thread with a loop, and waits for it.
func onLoop(_ body: @escaping @Sendable (RunLoop) -> Void) {
  let isOver = Signal()
  onThread {
    body(RunLoop.current)
    isOver.send()
  }
  isOver.wait()
}

/// Runs `body` as a task, and waits for it.
func onTask(_ body: @escaping @Sendable () async -> Void) {
  let isOver = Signal()
  Task.detached {
    await body()
    isOver.send()
  }
  isOver.wait()
}

/// Starts a loop that runs until the process ends, and returns it with the kernel's number of its thread.
func startLoop() -> (RunLoop, thread: Int32) {
  let made = Made()
  onThread {
    let loop = RunLoop.current
    loop.add(RunLoop.Source {}, forMode: .default)
    made.loop = loop
    made.thread = counts_thread()
    made.isThere.send()
    loop.runUntilStopped()
  }
  made.isThere.wait()
  guard let loop = made.loop else { fail("no loop") }
  return (loop, made.thread)
}

private final class Made: @unchecked Sendable {
  // Sendable: the signal orders the two threads.
  let isThere = Signal()
  var loop: RunLoop?
  var thread: Int32 = 0
}

/// Holds a loop in a call-out.
private final class Hold: Sendable {
  private let isHeld = Signal()
  private let goOn = Signal()

  /// Posts the call-out.
  func post(to loop: RunLoop) {
    loop.perform {
      self.isHeld.send()
      self.goOn.wait()
    }
  }

  func wait() { isHeld.wait() }
  func letGo() { goOn.send() }
}

/// Makes `post` post to a loop held in a call-out until its buffers have grown, and then once measured.
///
/// Four buffers alternate between the inbox and the running batch, so the number of single posts between two turns
/// varies: each buffer sees the full load, however the loop's passes are timed.
func postToHeldLoop(_ measure: Measure, _ post: (RunLoop) -> Void) {
  let (loop, _) = startLoop()
  let (warmUps, buffers) = (24, 4)
  for turn in 0...warmUps {
    let (first, second, isDone) = (Hold(), Hold(), Signal())
    for _ in 0..<turn % buffers {
      loop.perform { isDone.send() }
      isDone.wait()
    }
    first.post(to: loop)
    first.wait()
    if turn == warmUps { measure { post(loop) } } else { post(loop) }
    second.post(to: loop)
    first.letGo()
    second.wait()
    post(loop)
    loop.perform { isDone.send() }
    second.letGo()
    isDone.wait()
  }
}

/// Counts repeated operations: a hundred without measuring, then `count` measured ones.
final class Turns: @unchecked Sendable {
  // Sendable: used by one thread only.
  private var turn = 0
  private let count: Int
  private let measure: Measure
  private let end: @Sendable () -> Void

  init(_ count: Int, _ measure: Measure, end: @escaping @Sendable () -> Void) {
    self.count = count
    self.measure = measure
    self.end = end
  }

  func next() {
    turn += 1
    if turn == 100 { measure.begin() }
    guard turn == 100 + count else { return }
    measure.end()
    end()
  }

  var isOver: Bool { turn >= 100 + count }
}

/// Makes passes with a source that signals itself.
func makePasses(_ count: Int, _ measure: Measure, observed: Bool) {
  onLoop { loop in
    let itself = Itself()
    let turns = Turns(count, measure) { loop.stop() }
    let source = RunLoop.Source {
      turns.next()
      if !turns.isOver { itself.source?.signal() }
    }
    itself.source = source
    loop.add(source, forMode: .default)
    if observed {
      for activity: RunLoop.Activity in [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit] {
        loop.add(RunLoop.Observer(activities: activity) { _, _ in }, forMode: .default)
      }
    }
    source.signal()
    loop.runUntilStopped()
  }
}

private final class Itself: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  var source: RunLoop.Source?
}

/// Calls `body` with a hundred timers in a loop, and the base of their dates.
func withTimers(_ body: @escaping @Sendable (RunLoop, [Timer], SuspendingClock.Instant) -> Void) {
  onLoop { loop in
    let base = loop.now
    let timers = (0..<100).map { Timer(deadline: base.advanced(by: .seconds(100 + $0))) { _ in } }
    for timer in timers { loop.add(timer, forMode: .default) }
    // Ensures that there is room for one more.
    let extra = Timer(deadline: base.advanced(by: .seconds(1000))) { _ in }
    loop.add(extra, forMode: .default)
    extra.invalidate()
    body(loop, timers, base)
  }
}

/// Returns the writing end of an empty pipe.
func emptyPipe() -> Int32 {
  var ends: [Int32] = [0, 0]
  if pipe(&ends) != 0 { fail("no pipe") }
  return ends[1]
}

func residentThread() -> ResidentThread {
  do { return try ResidentThread() } catch { fail("\(error)") }
}

/// An actor isolated to a resident thread.
actor Pinned {
  private let thread: ResidentThread
  private var touched = 0

  init(_ thread: ResidentThread) { self.thread = thread }

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  func touch() { touched += 1 }

  func call(_ other: Pinned, _ count: Int, _ measure: Measure? = nil) async {
    measure?.begin()
    for _ in 0..<count {
      await other.touch()
      // Work isolated to this actor between two calls, which keeps the compiler from merging the hops.
      touched += 1
    }
    measure?.end()
  }
}
