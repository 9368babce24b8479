// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Performs a program's actions on a loop, and keeps the log.
final class Interpreter: @unchecked Sendable {
  // Sendable: a lock guards the log. Everything else is used by one thread at a time: the program's, or the companion
  // while that waits.

  private let program: Program
  private let subject: any Subject
  private let log = Mutex(Log())
  private var calls: CallCounts
  private var depth = 0
  private var isElsewhere = false
  private var companion: Companion?
  /// The number of interruptions that were performed.
  private var interrupted = 0
  private let interruptions: [Interruption]

  init(_ program: Program, _ subject: any Subject) {
    self.program = program
    self.subject = subject
    self.calls = CallCounts(program)
    // A stable sort: interruptions at the same tick keep their order.
    self.interruptions = program.whileAsleep.enumerated().sorted {
      ($0.element.tick, $0.offset) < ($1.element.tick, $1.offset)
    }.map(\.element)
  }

  /// Runs the program to its end; must be called on a new thread that uses the subject's time.
  func run() {
    subject.makeItems(of: program, for: self)
    perform(program.main)
    companion?.end()
  }

  /// The log so far, which is complete when the program has ended; can be used from any thread.
  var logSoFar: Log { log.withLock { $0 } }
}

// Called by loops.
extension Interpreter {
  enum CallOut {
    case observer(Int, UInt)
    case source(Int)
    case timer(Int)
    case block(Int)
  }

  /// Handles a loop's call to an item or a block.
  func callOut(_ callOut: CallOut) {
    let event: Log.Event
    let actions: [Action]
    switch callOut {
    case .observer(let index, let activity):
      event = .observer(index, activity)
      actions = program.observers[index].body.actions(ofCall: next(&calls.observers[index]))
    case .source(let index):
      event = .source(index)
      actions = program.sources[index].body.actions(ofCall: next(&calls.sources[index]))
    case .timer(let index):
      event = .timer(index)
      actions = program.timers[index].body.actions(ofCall: next(&calls.timers[index]))
    case .block(let index):
      event = .block(index)
      actions = program.blocks[index].actions(ofCall: next(&calls.blocks[index]))
    }
    if record(event) { perform(actions) } else { subject.stop() }
  }

  /// Handles a loop's call to a source's mode handler.
  func tell(_ event: Log.Event) { record(event) }

  /// The tick of the next interruption.
  var nextInterruption: Int? {
    interrupted < interruptions.count ? interruptions[interrupted].tick : nil
  }

  /// Performs the interruptions that are due while the loop sleeps.
  func interrupt() {
    onCompanion {
      while let tick = self.nextInterruption, tick <= self.subject.tick {
        self.interrupted += 1
        self.perform(self.interruptions[self.interrupted - 1].actions)
      }
    }
  }

  /// Stops a loop that would sleep forever.
  func endSleep() {
    record(.asleepForEver)
    subject.stop()
  }

  private func next(_ count: inout Int) -> Int {
    defer { count += 1 }
    return count
  }
}

extension Interpreter {
  /// Logs an entry; returns false if the log is full.
  @discardableResult
  private func record(_ event: Log.Event) -> Bool {
    let state = Log.State(
      tick: subject.tick, depth: depth, mode: subject.currentMode, isWaiting: subject.isWaiting)
    return log.withLock { log in
      guard !log.isFull else { return false }
      log.entries.append(Log.Entry(event, state))
      return true
    }
  }

  private func perform(_ actions: [Action]) {
    for action in actions {
      guard log.withLock({ !$0.isFull }) else { return }
      perform(action)
    }
  }

  private func perform(_ action: Action) {
    switch action {
    case .add(let item, let mode): subject.add(item, to: mode)
    case .remove(let item, let mode): subject.remove(item, from: mode)
    case .invalidate(let item): subject.invalidate(item)
    case .signal(let source): subject.signal(source: source)
    case .perform(let block, let modes): subject.perform(block: block, in: modes, for: self)
    case .addCommonMode(let mode): subject.addCommonMode(mode)
    case .setDate(let timer, let tick): subject.setDate(ofTimer: timer, to: tick)
    case .stop: subject.stop()
    case .stopMode(let mode): subject.stop(mode: mode)
    case .wakeUp: subject.wakeUp()
    case .run(let mode, let limit, let returnAfterSource): run(in: mode, limit, returnAfterSource)
    case .runUntilStopped: runUntilStopped()
    case .work(let ticks): subject.work(ticks)
    case .ask(let question): record(.answer(question, subject.answer(question)))
    case .elsewhere(let actions): onCompanion { self.perform(actions) }
    }
  }

  private func run(in mode: ModeName, _ limit: Limit, _ returnAfterSource: Bool) {
    guard !isElsewhere, depth < Program.deepestRun else { return }
    depth += 1
    let outcome = subject.run(in: mode, limit, returnAfterSource: returnAfterSource)
    depth -= 1
    record(.ranWith(outcome))
  }

  private func runUntilStopped() {
    guard !isElsewhere, depth < Program.deepestRun else { return }
    depth += 1
    subject.runUntilStopped()
    depth -= 1
    record(.ranUntilStopped)
  }

  /// Runs work on another thread, and waits for it.
  private func onCompanion(_ work: @escaping @Sendable () -> Void) {
    guard !isElsewhere else { return work() }
    isElsewhere = true
    let companion = companion ?? Companion { [subject] in subject.adoptCallingThread() }
    self.companion = companion
    companion.perform(work)
    isElsewhere = false
  }
}

/// The numbers of calls of each item and block.
private struct CallCounts {
  var sources: [Int]
  var observers: [Int]
  var timers: [Int]
  var blocks: [Int]

  init(_ program: Program) {
    sources = Array(repeating: 0, count: program.sources.count)
    observers = Array(repeating: 0, count: program.observers.count)
    timers = Array(repeating: 0, count: program.timers.count)
    blocks = Array(repeating: 0, count: program.blocks.count)
  }
}
