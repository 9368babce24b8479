// SPDX-License-Identifier: Apache-2.0

// A thread may end in a call-out through `Thread.exit()` or `pthread_exit`, which abandons the frames of the pass. The
// loop itself therefore keeps the state that those frames would have continued with: the timers and observers being
// called, which may remain in use by other loops, and the batches of running blocks, in which each block is either run
// or counted as dropped. A source, port or descriptor source that is being called needs no such state; the abandoned
// frame leaks its references to it and its closure.

extension RunLoop {
  /// Ends the call-outs from which the thread does not return; called on the loop's thread as it ends.
  func endAbandonedCallOuts() {
    for due in dueTimers where due.isCalled { due.member?.abandonCallOut() }
    for observer in calledObservers.abandon() { observer._withUnsafeGuaranteedRef { $0.leave() } }
  }
}

extension Timer {
  /// Ends a call-out that does not return because its thread ends; the timer keeps its date and may fire in another
  /// loop.
  func abandonCallOut() {
    // Left first, because the timer's current loop may fire it as soon as it is back in a heap.
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
  /// The batch with the earliest entry among those that are running or were abandoned.
  var firstRunning: Batch? {
    let batches = (0..<running.count).map { running.withElement(at: $0) { $0 } }
    return batches.min { $0.firstSequence < $1.firstSequence }
  }
}

/// The observers that a loop's thread is calling, in case the thread ends in one of the calls.
///
/// Must be used on the loop's thread. The lists from which an observer is called keep it alive.
struct CalledObservers {
  var innermost: Unmanaged<RunLoop.Observer>?
  /// Observers whose call-outs contain nested runs that call observers, outermost first.
  private var outer: ContiguousArray<Unmanaged<RunLoop.Observer>> = []

  /// Begins the calls of an activity, and returns the observer in whose call this happens, if any.
  @inline(__always)
  mutating func begin() -> Unmanaged<RunLoop.Observer>? {
    if innermost != nil { nest() }
    return innermost
  }

  /// Ends the calls of an activity.
  @inline(__always)
  mutating func end(_ before: Unmanaged<RunLoop.Observer>?) {
    innermost = before
    if before != nil { unnest() }
  }

  // Not inlined, because observers rarely run the loop.

  @inline(never)
  private mutating func nest() {
    if let innermost { outer.append(innermost) }
  }

  @inline(never)
  private mutating func unnest() { outer.removeLast() }

  /// Ends all calls, none of which returns because the thread ends in the innermost one.
  mutating func abandon() -> ContiguousArray<Unmanaged<RunLoop.Observer>> {
    defer { self = CalledObservers() }
    if let innermost { outer.append(innermost) }
    return outer
  }
}
