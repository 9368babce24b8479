// SPDX-License-Identifier: Apache-2.0

// A thread may end in a call-out, by `Thread.exit()` or `pthread_exit`. The frames of the pass are then left as they
// are. So the loop itself keeps the state that they would have continued with: the timers and observers that are being
// called, which may go on in other loops, and the batches of blocks that are being run, of which each block runs or is
// counted as dropped. A source, port or descriptor source that is being called needs no such state; it and its closure
// are held by the frame and stay with it.

extension RunLoop {
  /// Ends the call-outs from which the thread does not return; called on the loop's thread, which is ending.
  func endAbandonedCallOuts() {
    for due in dueTimers where due.isCalled { due.member?.abandonCallOut() }
    for observer in calledObservers.abandon() { observer._withUnsafeGuaranteedRef { $0.leave() } }
  }
}

extension Timer {
  /// Notes that the call-out does not return because its thread ends: the timer keeps its date, and may fire again
  /// elsewhere.
  func abandonCallOut() {
    // This comes first: the loop that has the timer now may fire it as soon as it is back in a heap.
    let isLast = interval == 0 ? reference.leaveUnmarking() : reference.leave()
    let rearms = guarded { home in
      isFiring = false
      wasMoved = false
      return home?.takeBack(self, keepsTurn: false) ?? false
    }
    if rearms { holder?.post() }
    if isLast { releaseContents() }
  }
}

extension BlockState {
  /// The batch with the entry that was posted first, among the batches that are being run or were left.
  var firstRunning: Batch? {
    let batches = (0..<running.count).map { running.withElement(at: $0) { $0 } }
    return batches.min { $0.firstSequence < $1.firstSequence }
  }
}

/// The observers that a loop's thread is calling, in case the thread ends in one of these calls.
///
/// Used on the loop's thread only. An observer that is being called is kept alive by the lists that it is called from.
struct CalledObservers {
  var innermost: Unmanaged<RunLoop.Observer>?
  /// The observers in whose calls runs are nested that call observers, the outermost first.
  private var outer: ContiguousArray<Unmanaged<RunLoop.Observer>> = []

  /// Begins the calls of a stage, and returns the observer in whose call this happens.
  @inline(__always)
  mutating func begin() -> Unmanaged<RunLoop.Observer>? {
    if innermost != nil { nest() }
    return innermost
  }

  /// Ends the calls of a stage.
  @inline(__always)
  mutating func end(_ before: Unmanaged<RunLoop.Observer>?) {
    innermost = before
    if before != nil { unnest() }
  }

  // Kept out of line: usually no observer runs the loop.

  @inline(never)
  private mutating func nest() {
    if let innermost { outer.append(innermost) }
  }

  @inline(never)
  private mutating func unnest() { outer.removeLast() }

  /// Ends all calls, none of which returns, because the thread ends in the innermost.
  mutating func abandon() -> ContiguousArray<Unmanaged<RunLoop.Observer>> {
    defer { self = CalledObservers() }
    if let innermost { outer.append(innermost) }
    return outer
  }
}
