// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// An instrumented thread, which records its body's actions and its object's deallocation.
///
/// It corresponds to the articles' `MyThread` or `YZThread`, a subclass that logs its deallocation.
final class WatchedThread: Thread, @unchecked Sendable {
  // Sendable: it adds only a constant.
  let watch: Watch

  /// Creates a thread without starting it.
  ///
  /// - Parameters:
  ///   - bench: The bench for waits and messages.
  ///   - name: The thread's name.
  ///   - events: The record of the thread's events.
  ///   - body: The body of the thread.
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

  /// The properties of a thread that the articles print.
  var flags: String { "isExecuting = \(isExecuting ? 1 : 0), isFinished = \(isFinished ? 1 : 0)" }

  /// Waits until the thread's body has returned and the thread has finished, and returns its properties.
  func finished() -> String {
    if watch.settle() == .returned { try? join(timeout: watch.bench.meeting.patience) }
    watch.say("\(flags)")
    return flags
  }

  /// Ends a thread that would live forever.
  ///
  /// A loop that received work has a source for it that cannot be removed, so `run()` continues. Such a thread exits
  /// in the middle of the run, and the references of its frames are leaked.
  func end() {
    watch.cut()
    if watch.rest() == .asleep { performSelector { Thread.exit() } }
    try? join(timeout: watch.bench.meeting.patience)
  }
}

/// The state of a thread, which remains available after its object was deallocated; can be used from any thread.
final class Watch: Sendable {
  /// The state that a thread has settled in.
  enum Rest: String {
    /// Its loop has nothing left to do, and sleeps.
    case asleep
    /// Its body has returned.
    case returned
    /// Neither, until the timeout.
    case restless
  }

  private struct State {
    weak var loop: RunLoop?
    var threadID: Int32 = 0
    /// Whether the last block has run.
    var isThrough = false
    var hasReturned = false
    var isReleased = false
    var eventsTold = 0
    /// Closures that remove the items that keep the loop alive.
    var cuts: [@Sendable () -> Void] = []
  }

  let bench: Bench
  /// The events so far, in order.
  let events: Record
  private let name: String
  private let state = Mutex(State())
  // Relaxed: stored before the thread is stopped, and read as a result of the stop.
  private let isCutOff = Atomic<Bool>(false)

  fileprivate init(name: String, bench: Bench, events: Record) {
    self.name = name
    self.bench = bench
    self.events = events
  }
}

// Must be called on the thread.
extension Watch {
  fileprivate func run(_ body: (Watch) -> Void) {
    state.withLock { $0.threadID = callingThread }
    body(self)
    change { $0.hasReturned = true }
  }

  /// The thread's loop, created and watched on first use.
  var loop: RunLoop {
    let loop = RunLoop.current
    state.withLock { $0.loop = loop }
    return loop
  }

  /// Returns a port that keeps its loop alive until the bench ends the thread.
  func port() -> Port {
    let port = Port()
    whenCut { port.invalidate() }
    return port
  }

  /// Returns a source that keeps its loop alive until the bench ends the thread.
  func source() -> RunLoop.Source {
    let source = RunLoop.Source {}
    whenCut { source.invalidate() }
    return source
  }

  /// Calls a closure when the bench ends the thread, to remove what keeps the loop alive.
  func whenCut(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.cuts.append(body) } }

  /// Whether the bench is ending the thread because its own code does not.
  var isCut: Bool { isCutOff.load(ordering: .relaxed) }
}

// Can be called from any thread.
extension Watch {
  /// Whether the calling thread is the watched one, in words.
  var thread: String {
    state.withLock { $0.threadID } == callingThread ? "its own thread" : "another thread"
  }

  /// The thread's loop, while it exists.
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
    // A loop's sleep is not announced.
    bench.meeting.look { hasReturned || isAsleep }
    guard !hasReturned, let loop = state.withLock({ $0.loop }) else { return hasReturned ? .returned : .restless }
    // Posts a block after everything else. Once it has run and the loop sleeps, nothing is left.
    state.withLock { $0.isThrough = false }
    loop.perform(inModes: [.common]) { [self] in change { $0.isThrough = true } }
    let isAtRest = bench.meeting.look { hasReturned || (state.withLock { $0.isThrough } && isAsleep) }
    return hasReturned ? .returned : isAtRest ? .asleep : .restless
  }

  private var isAsleep: Bool {
    let (loop, thread) = state.withLock { ($0.loop, $0.threadID) }
    return loop != nil && LaboratoryKit.isAsleep(thread)
  }

  /// Waits for the deallocation of the thread's object; returns false after a timeout.
  @discardableResult
  func waitForRelease() -> Bool {
    defer { tellEvents() }
    return bench.meeting.wait { state.withLock { $0.isReleased } }
  }

  /// Lets the thread end: removes what keeps its loop alive, and sets ``isCut`` for its body.
  func cut() {
    isCutOff.store(true, ordering: .relaxed)
    let (loop, cuts) = state.withLock { state in
      defer { state.cuts = [] }
      return (state.loop, state.cuts)
    }
    for cut in cuts { cut() }
    loop?.stop()
  }

  /// Stops the thread's loop from the calling thread.
  func stopLoop() { state.withLock { $0.loop }?.stop() }

  /// Posts a block to the thread's loop.
  func perform(_ block: @escaping @Sendable () -> Void) { _ = state.withLock { $0.loop }?.perform(block) }

  /// Writes a line about the thread to the experiment's log.
  func say(_ line: String) { bench.log.write("\(name): \(line)") }

  fileprivate func noteRelease() {
    events.write("dealloc")
    change { $0.isReleased = true }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    bench.meeting.announce()
  }

  /// Waits until the thread has nothing left to do, and returns the events since the last call, or `none`.
  func news() -> String {
    _ = rest()
    let lines = tellEvents()
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }

  /// Logs the events since the last call.
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
