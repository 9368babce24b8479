// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// A thread with instruments: what its body does and what becomes of its object is noted.
///
/// It is what the articles call `MyThread` or `YZThread`, a subclass that says when it is deallocated.
final class WatchedThread: Thread, @unchecked Sendable {
  // Sendable: it adds a constant only.
  let watch: Watch

  /// Makes a thread that has not been started.
  ///
  /// - Parameters:
  ///   - bench: Where to wait and to write.
  ///   - name: The thread's name.
  ///   - events: Where the thread writes down what happens.
  ///   - body: What the thread does.
  init(
    on bench: Bench, name: String = "MyThread", events: Record = Record(),
    body: @escaping @Sendable (Watch) -> Void
  ) {
    let watch = Watch(name: name, bench: bench, events: events)
    self.watch = watch
    super.init { watch.run(body) }
    self.name = name
  }

  deinit {
    watch.noteRelease()
  }

  /// What the articles print of a thread.
  var flags: String { "isExecuting = \(isExecuting ? 1 : 0), isFinished = \(isFinished ? 1 : 0)" }

  /// Waits until the thread's body has returned and the thread has finished; what it then is.
  func finished() -> String {
    if watch.settle() == .returned { try? join(timeout: watch.bench.meeting.patience) }
    watch.say("\(flags)")
    return flags
  }

  /// Ends a thread that would live forever.
  ///
  /// Where work was handed to the thread, its loop has a source for it that cannot be taken out, so that `run()`
  /// continues. Such a thread exits in the middle of it: what its frames hold is not released.
  func end() {
    watch.cut()
    if watch.rest() == .asleep { performSelector { Thread.exit() } }
    try? join(timeout: watch.bench.meeting.patience)
  }
}

/// What is known of a thread, also after its object has gone.
///
/// Any thread.
final class Watch: Sendable {
  /// What a thread has come to.
  enum Rest: String {
    /// Its loop has done all there was to do and sleeps.
    case asleep
    /// Its body has returned.
    case returned
    /// Neither, however long one waits.
    case restless
  }

  private struct State {
    weak var loop: RunLoop?
    var threadID: Int32 = 0
    /// Whether the block that comes last has run.
    var isThrough = false
    var hasReturned = false
    var isReleased = false
    var eventsTold = 0
    /// Takes out of the loop what keeps it.
    var cuts: [@Sendable () -> Void] = []
  }

  let bench: Bench
  /// What has happened, in order.
  let events: Record
  private let name: String
  private let state = Mutex(State())
  // Relaxed: it is stored before the thread is stopped, by which it is read.
  private let isCutOff = Atomic<Bool>(false)

  fileprivate init(name: String, bench: Bench, events: Record) {
    self.name = name
    self.bench = bench
    self.events = events
  }
}

// On the thread.
extension Watch {
  fileprivate func run(_ body: (Watch) -> Void) {
    state.withLock { $0.threadID = callingThread }
    body(self)
    change { $0.hasReturned = true }
  }

  /// The loop of the thread, made and watched from the first request on.
  var loop: RunLoop {
    let loop = RunLoop.current
    state.withLock { $0.loop = loop }
    return loop
  }

  /// A port that keeps the loop that it is added to, until the bench ends the thread.
  func port() -> Port {
    let port = Port()
    whenCut { port.invalidate() }
    return port
  }

  /// A source that keeps the loop that it is added to, until the bench ends the thread.
  func source() -> RunLoop.Source {
    let source = RunLoop.Source {}
    whenCut { source.invalidate() }
    return source
  }

  /// Calls a closure when the bench ends the thread: it takes out of the loop what keeps that.
  func whenCut(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.cuts.append(body) } }

  /// Whether the bench ends the thread, as its own code does not.
  var isCut: Bool { isCutOff.load(ordering: .relaxed) }
}

// From any thread.
extension Watch {
  /// Whether the calling thread is the one that is watched.
  var thread: String {
    state.withLock { $0.threadID } == callingThread ? "its own thread" : "another thread"
  }

  /// The thread's loop, as long as it is there.
  var loopIfAlive: RunLoop? { state.withLock { $0.loop } }

  /// The kernel's number of the thread.
  var threadNumber: Int32 { state.withLock { $0.threadID } }

  var hasReturned: Bool { state.withLock { $0.hasReturned } }

  /// Waits until the thread has nothing left to do.
  @discardableResult
  func settle() -> Rest {
    defer { tellEvents() }
    return rest()
  }

  fileprivate func rest() -> Rest {
    // Nobody announces that a loop sleeps.
    bench.meeting.look { hasReturned || isAsleep }
    guard !hasReturned, let loop = state.withLock({ $0.loop }) else { return hasReturned ? .returned : .restless }
    // A block that comes after all else; when it has run and the loop sleeps, nothing is left.
    state.withLock { $0.isThrough = false }
    loop.perform(inModes: [.common]) { [self] in change { $0.isThrough = true } }
    let isAtRest = bench.meeting.look { hasReturned || (state.withLock { $0.isThrough } && isAsleep) }
    return hasReturned ? .returned : isAtRest ? .asleep : .restless
  }

  private var isAsleep: Bool {
    let (loop, thread) = state.withLock { ($0.loop, $0.threadID) }
    return loop != nil && LaboratoryKit.isAsleep(thread)
  }

  /// Waits until the thread's object has gone; false if it does not go.
  @discardableResult
  func waitForRelease() -> Bool {
    defer { tellEvents() }
    return bench.meeting.wait { state.withLock { $0.isReleased } }
  }

  /// Lets the thread come to its end: what keeps its loop is taken out, and its body should look at ``isCut``.
  func cut() {
    isCutOff.store(true, ordering: .relaxed)
    let (loop, cuts) = state.withLock { state in
      defer { state.cuts = [] }
      return (state.loop, state.cuts)
    }
    for cut in cuts { cut() }
    loop?.stop()
  }

  /// Stops the thread's loop, on the calling thread.
  func stopLoop() { state.withLock { $0.loop }?.stop() }

  /// Posts a block to the thread's loop.
  func perform(_ block: @escaping @Sendable () -> Void) { _ = state.withLock { $0.loop }?.perform(block) }

  /// Writes a line about the thread into the experiment's log.
  func say(_ line: String) { bench.log.write("\(name): \(line)") }

  fileprivate func noteRelease() {
    events.write("dealloc")
    change { $0.isReleased = true }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    bench.meeting.announce()
  }

  /// Waits until the thread has nothing left to do; what has happened since it was last waited for, or `none`.
  func news() -> String {
    _ = rest()
    let lines = tellEvents()
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }

  /// Tells in the log what has happened since the last time.
  @discardableResult
  private func tellEvents() -> ArraySlice<String> {
    let lines = events.lines
    let told = state.withLock { state in
      defer { state.eventsTold = lines.count }
      return state.eventsTold
    }
    for line in lines[told...] { say(line) }
    return lines[told...]
  }
}
