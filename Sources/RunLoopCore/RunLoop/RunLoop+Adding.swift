// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Which items a loop serves, from any thread. An item that is in a mode already is left as it is.

extension RunLoop {
  /// Adds a source to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// A source may be in any number of modes of any number of loops. Its `schedule` call-out is made on this thread,
  /// once for each concrete mode that it enters; but if a call-out for the same mode is still running on another
  /// thread, that thread makes it afterwards. Can be called from any thread.
  ///
  /// - Returns: False if the loop rejects the source: it is invalid, or this loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddSource`.
  @discardableResult
  public func add(_ source: Source, forMode mode: Mode) -> Bool {
    let isIn = join(source, mode)
    tellOfItem(mode)
    return isIn
  }

  /// Removes a source from a mode, or, for ``Mode/common``, a common source from every common mode.
  ///
  /// Its `cancel` call-out is made on this thread, once for each concrete mode that it leaves; but if its `schedule`
  /// for that mode is still running, the thread that runs it makes the call afterwards. Removing the last item of a
  /// mode does not wake the loop: see ``remove(_:forMode:)-(Timer,_)``. Can be called from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopRemoveSource`.
  public func remove(_ source: Source, forMode mode: Mode) { part(source, mode) }

  /// Whether a source is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// Can be called from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopContainsSource`.
  public func contains(_ source: Source, forMode mode: Mode) -> Bool { holds(source, mode) }
}

extension RunLoop {
  /// Adds a timer to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// A timer is in the modes of one loop at a time. One that has left its last mode can be added to another loop, and
  /// then is no longer among the common items of the loop before. A sleeping loop takes the timer into account at once.
  /// The loop rejects and reports a timer that is invalid or in a mode of another loop, and every timer once its
  /// thread has ended; where a `Bool` is expected, the call returns whether the timer was added. Can be called from any
  /// thread.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddTimer`, the Foundation method `add(_:forMode:)`.
  @inline(never)
  public func add(_ timer: Timer, forMode mode: Mode) {
    _ = add(timer, forMode: mode, from: Origin(site: crl_call_site()))
  }

  /// Adds a timer to a mode, and records `origin` for the instruments.
  @inline(__always)
  package func add(_ timer: Timer, forMode mode: Mode, from origin: Origin) -> Bool {
    // Before it may fire.
    Origin.note(timer, site: origin.site & ~(1 << 63))
    let isIn = addHere(timer, mode) ?? join(timer, mode)
    tellOfItem(mode)
    return isIn
  }

  /// Adds a timer for a caller that has an error of its own: a rejection is counted and not reported.
  ///
  /// A check before the call would not do, because the loop may end between the two.
  package func offer(_ timer: Timer, forMode mode: Mode, from origin: Origin = .unknown) -> Bool {
    Origin.note(timer, site: origin.site & ~(1 << 63))
    let isIn = addHere(timer, mode) ?? join(timer, mode, isReported: false)
    tellOfItem(mode)
    return isIn
  }

  /// Adds a source for a caller that has an error of its own: a rejection is counted and not reported.
  package func offer(_ source: Source, forMode mode: Mode) -> Bool {
    let isIn = join(source, mode, isReported: false)
    tellOfItem(mode)
    return isIn
  }

  /// Removes a timer from a mode, or, for ``Mode/common``, a common timer from every common mode.
  ///
  /// It stays valid and can be added again, here or, when it has left its last mode, to another loop. Can be called
  /// from any thread.
  ///
  /// Removing the last item of a mode does not wake a loop that sleeps in it. The run finds that its mode is empty at
  /// its next wake-up; if the item leaves on the loop's own thread, at the end of the pass. To end such a run, call
  /// ``stop()``. To replace the only item of a mode, add the new one first: then the mode is empty at no time, and the
  /// run goes on even if it is in the middle of a pass.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopRemoveTimer`.
  public func remove(_ timer: Timer, forMode mode: Mode) { if !removeHere(timer, mode) { part(timer, mode) } }

  /// Whether a timer is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// A timer that is in none of this loop's modes is not among its common items either. Can be called from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopContainsTimer`.
  public func contains(_ timer: Timer, forMode mode: Mode) -> Bool { holds(timer, mode) }
}

extension RunLoop {
  /// Adds an observer to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// An observer is in the modes of one loop at a time. One that has left its last mode can be added to another loop,
  /// and then is no longer among the common items of the loop before. Added during a stage, it is called from the next
  /// stage on. Can be called from any thread.
  ///
  /// - Returns: False if the loop rejects the observer: it is invalid, in a mode of another loop, or this loop's thread
  ///   has ended.
  /// - Complexity: O(1) for each mode. The loop puts the observers of a mode in order, in O(n log n), when it comes to
  ///   the next stage after a change.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddObserver`.
  @discardableResult
  public func add(_ observer: Observer, forMode mode: Mode) -> Bool { join(observer, mode) }

  /// Removes an observer from a mode, or, for ``Mode/common``, a common observer from every common mode.
  ///
  /// It stays valid. Removed during a stage that has yet to call it, it is still called once. Can be called from any
  /// thread.
  ///
  /// - Complexity: O(1) for each mode. The loop puts the observers of a mode in order, in O(n log n), when it comes to
  ///   the next stage after a change.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopRemoveObserver`.
  public func remove(_ observer: Observer, forMode mode: Mode) { part(observer, mode) }

  /// Whether an observer is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// An observer that is in none of this loop's modes is not among its common items either. Can be called from any
  /// thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopContainsObserver`.
  public func contains(_ observer: Observer, forMode mode: Mode) -> Bool { holds(observer, mode) }
}

extension RunLoop {
  /// Adds a descriptor source to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// The first of a mode makes an epoll set for it, and the last to leave closes it. A sleeping loop takes the source
  /// into account at once. Can be called from any thread.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is not open (`EBADF`) or cannot be waited
  ///   for, as a regular file cannot (`EPERM`), or if the process has no descriptor left for the set (`EMFILE`,
  ///   `ENFILE`); ``RunLoopError/invalidSource``, ``RunLoopError/loopHasEnded``. The source is in no further mode then.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddSource`.
  public func add(_ source: DescriptorSource, forMode mode: Mode) throws(RunLoopError) {
    guard let rejection = attempt(source, mode) else { return tellOfItem(mode) }
    _ = reject(rejection, isReported: false)
    switch rejection {
    case .system(let error): throw .cannotWatch(descriptor: source.descriptor, error)
    case .endedLoop: throw endedError
    case .invalidItem, .boundItem, .noMode: throw .invalidSource
    }
  }

  /// Removes a descriptor source from a mode, or, for ``Mode/common``, a common source from every common mode.
  ///
  /// What was found ready is not served any more. Can be called from any thread. The corresponding Core Foundation
  /// function is `CFRunLoopRemoveSource`.
  public func remove(_ source: DescriptorSource, forMode mode: Mode) { part(source, mode) }

  /// Whether a descriptor source is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// Can be called from any thread. The corresponding Core Foundation function is `CFRunLoopContainsSource`.
  public func contains(_ source: DescriptorSource, forMode mode: Mode) -> Bool { holds(source, mode) }
}
