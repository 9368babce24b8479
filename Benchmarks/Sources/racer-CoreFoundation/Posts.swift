// SPDX-License-Identifier: Apache-2.0

import CRace
import CoreFoundation
import Foundation
import Race

let defaultMode = kCFRunLoopDefaultMode

/// An object that accepts posts.
protocol Posting: AnyObject {
  func post(_ block: @escaping @convention(block) () -> Void)
}

/// A loop that runs on its own thread until the process ends.
final class Loop: Posting, @unchecked Sendable {
  let loop: CFRunLoop

  private init(_ loop: CFRunLoop) { self.loop = loop }

  static func start() -> Loop {
    let handed = Handed<Loop>()
    onThread {
      let own = Loop(CFRunLoopGetCurrent())
      var context = CFRunLoopSourceContext()
      context.perform = { _ in }
      CFRunLoopAddSource(own.loop, CFRunLoopSourceCreate(nil, 0, &context), defaultMode)
      own.post { handed.give(own) }
      CFRunLoopRun()
    }
    return handed.take()
  }

  /// Posts a block and wakes the loop, which a block alone does not.
  func post(_ block: @escaping @convention(block) () -> Void) {
    CFRunLoopPerformBlock(loop, defaultMode, block)
    CFRunLoopWakeUp(loop)
  }
}

/// A loop with a queue of functions, and a source that runs them.
final class SourceLoop: @unchecked Sendable {
  // Sendable: the lock guards the queue; the second queue belongs to the loop's thread.
  typealias Work = @convention(c) (UnsafeMutableRawPointer?) -> Void
  private let loop = Loop.start()
  private var source: CFRunLoopSource?
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var posted: [(Work, UnsafeMutableRawPointer?)] = []
  private var taken: [(Work, UnsafeMutableRawPointer?)] = []

  init() {
    pthread_mutex_init(lock, nil)
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in
      if let info { Unmanaged<SourceLoop>.fromOpaque(info).takeUnretainedValue().serve() }
    }
    source = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(loop.loop, source, defaultMode)
  }

  func post(_ work: Work, _ context: UnsafeMutableRawPointer?) {
    pthread_mutex_lock(lock)
    posted.append((work, context))
    let wasEmpty = posted.count == 1
    pthread_mutex_unlock(lock)
    guard wasEmpty else { return }
    CFRunLoopSourceSignal(source)
    CFRunLoopWakeUp(loop.loop)
  }

  private func serve() {
    pthread_mutex_lock(lock)
    swap(&posted, &taken)
    pthread_mutex_unlock(lock)
    for (work, context) in taken { work(context) }
    taken.removeAll(keepingCapacity: true)
  }
}

func w1() { posts(producers: 1) }
func w2() { posts(producers: 4) }

private func posts(producers: Int32) {
  let loop = Loop.start()
  racePosts(producers: producers, race_scaled(300_000, 1000)) { count in
    if race_captures() {
      let object = Counted()
      for number in 0..<count { loop.post { object.run(number) } }
    } else {
      for _ in 0..<count { loop.post { race_run_one() } }
    }
  }
  guard !race_captures() else { return }
  let source = SourceLoop()
  race_set_peer("CoreFoundation (source)")
  racePosts(producers: producers, race_scaled(1_000_000, 1000)) { count in
    for _ in 0..<count { source.post({ _ in race_run_one() }, nil) }
  }
}

/// Two loops, with a block for each that posts the other's.
private final class Table: @unchecked Sendable {
  // Sendable: the count belongs to the first loop's thread, and the rest is constant once the game has begun.
  private let here = Loop.start()
  private let there = Loop.start()
  private var hitHere: @convention(block) () -> Void = {}
  private var hitThere: @convention(block) () -> Void = {}
  private var left: Int64 = 0

  init() {
    hitHere = { [self] in
      race_run_one()
      left -= 1
      if left > 0 { there.post(hitThere) }
    }
    hitThere = { [self] in here.post(hitHere) }
  }

  func play(_ count: Int64) {
    left = count
    there.post(hitThere)
  }
}

func w3() {
  let table = Table()
  raceTurns("round trip", race_scaled(30_000, 100)) { table.play($0) }
}

func w4() {
  let (loop, gate) = (Loop.start(), Gate())
  raceTurns("post and wait", race_scaled(30_000, 100)) { count in
    let answer: @convention(block) () -> Void = {
      race_run_one()
      gate.open()
    }
    for _ in 0..<count {
      loop.post(answer)
      gate.wait()
    }
  }
}

/// A source that signals itself.
private final class Passes {
  private let loop: CFRunLoop = CFRunLoopGetCurrent()
  private var source: CFRunLoopSource?
  private var left: Int64 = 0

  init() {
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in
      if let info { Unmanaged<Passes>.fromOpaque(info).takeUnretainedValue().again() }
    }
    source = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(loop, source, defaultMode)
  }

  private func again() {
    left -= 1
    if left > 0 { CFRunLoopSourceSignal(source) } else { CFRunLoopStop(loop) }
  }

  func observe() {
    let activities: [CFRunLoopActivity] = [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit]
    for activity in activities {
      let observer = CFRunLoopObserverCreate(nil, activity.rawValue, true, 0, { _, _, _ in }, nil)
      CFRunLoopAddObserver(loop, observer, defaultMode)
    }
  }

  /// Makes passes, and returns the nanoseconds of processor time for each.
  func run(_ count: Int64) -> Double {
    left = count
    CFRunLoopSourceSignal(source)
    let before = race_cpu()
    CFRunLoopRun()
    return Double(race_cpu() - before) / Double(count)
  }
}

func w8() {
  let passes = Passes()
  let count = race_scaled(300_000, 1000)
  _ = passes.run(count / 20 + 1)
  race_report("pass", passes.run(count), "ns")
  passes.observe()
  race_report("pass, observed", passes.run(count), "ns")
}
