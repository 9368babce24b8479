// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import Glibc
import RunLoopKit
import Synchronization

// The main loop beside Core Foundation's, for strace and valgrind: the cost of an operation is the difference between
// runs with two counts.

/// The relation between the two main loops.
enum Service: String, CaseIterable {
  /// Core Foundation's main loop was never created.
  case alone
  /// Each serves the other, without a call.
  case automatic
  /// `serveCoreFoundation()` was called.
  case called
  /// Core Foundation's was created, and `stopServingCoreFoundation()` was called.
  case ended

  func begin() throws {
    switch self {
    case .alone: break
    case .automatic: _ = CFRunLoopGetMain()
    case .called: try RunLoop.main.serveCoreFoundation()
    case .ended:
      _ = CFRunLoopGetMain()
      RunLoop.main.stopServingCoreFoundation()
    }
  }
}

/// Makes passes with a source of ours that signals itself.
func passes(_ count: Int) {
  let turns = Atomic<Int>(0)
  let itself = Mutex<RunLoop.Source?>(nil)
  let source = RunLoop.Source {
    if turns.wrappingAdd(1, ordering: .relaxed).newValue == count {
      RunLoop.main.stop()
    } else {
      itself.withLock { $0 }?.signal()
    }
  }
  itself.withLock { $0 = source }
  RunLoop.main.add(source, forMode: .default)
  source.signal()
  report("a pass", count) { RunLoop.main.runUntilStopped() }
}

/// Runs passes driven by one of our timers, so that each pass sleeps.
func fires(_ count: Int) {
  let turns = Atomic<Int>(0)
  let timer = Timer(timeInterval: 0.0002, repeats: true) { _ in
    if turns.wrappingAdd(1, ordering: .relaxed).newValue == count { RunLoop.main.stop() }
  }
  RunLoop.main.add(timer, forMode: .default)
  report("a fire", count) { RunLoop.main.runUntilStopped() }
}

/// Makes passes with a Core Foundation source that signals itself, in a run of that loop.
func turns(_ count: Int) {
  final class Turns: @unchecked Sendable {
    // Sendable: used by the main thread only.
    var left = 0
    var source: CFRunLoopSource?
  }
  let turns = Turns()
  turns.left = count
  // Keeps our loop's mode from being empty.
  RunLoop.main.add(RunLoop.Source {}, forMode: .default)
  var context = CFRunLoopSourceContext()
  context.info = Unmanaged.passUnretained(turns).toOpaque()
  context.perform = { info in
    guard let info else { return }
    let turns = Unmanaged<Turns>.fromOpaque(info).takeUnretainedValue()
    turns.left -= 1
    if turns.left == 0 { CFRunLoopStop(CFRunLoopGetMain()) } else { CFRunLoopSourceSignal(turns.source) }
  }
  turns.source = CFRunLoopSourceCreate(nil, 0, &context)
  CFRunLoopAddSource(CFRunLoopGetMain(), turns.source, kCFRunLoopDefaultMode)
  CFRunLoopSourceSignal(turns.source)
  report("a turn of Core Foundation's", count) { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false) }
}

private func report<Result>(_ what: String, _ count: Int, _ work: () -> Result) {
  let start = nanoseconds()
  _ = work()
  print("\(what): \((nanoseconds() - start) / count) ns")
}
