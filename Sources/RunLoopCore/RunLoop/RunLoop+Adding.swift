// Which items a loop serves, from any thread. An item that is in a mode already is left as it is.

extension RunLoop {
  /// Adds a source to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// A source may be in any number of modes of any number of loops. Its `schedule` call-out is made on this thread, once for
  /// each concrete mode that it enters. Any thread.
  ///
  /// - Returns: False if the source was refused: it is invalid, or this loop's thread has ended.
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
  /// Its `cancel` call-out is made on this thread, once for each concrete mode that it leaves. Any thread. The corresponding Core Foundation function is
  /// `CFRunLoopRemoveSource`.
  public func remove(_ source: Source, forMode mode: Mode) { part(source, mode) }

  /// Whether a source is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// Any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopContainsSource`.
  public func contains(_ source: Source, forMode mode: Mode) -> Bool { holds(source, mode) }
}

extension RunLoop {
  /// Adds a timer to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// A timer is bound to one loop at a time. A sleeping loop takes it into account at once. O(log n) in the timers of each mode. Any thread.
  ///
  /// - Returns: False if the timer was refused: it is invalid, bound to another loop, or this loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddTimer`.
  @discardableResult
  public func add(_ timer: Timer, forMode mode: Mode) -> Bool {
    let isIn = addHere(timer, mode) ?? join(timer, mode)
    tellOfItem(mode)
    return isIn
  }

  /// Removes a timer from a mode, or, for ``Mode/common``, a common timer from every common mode.
  ///
  /// It stays valid and can be added again, here or elsewhere. O(log n) in the timers of each mode. Any thread. The corresponding Core Foundation function is
  /// `CFRunLoopRemoveTimer`.
  public func remove(_ timer: Timer, forMode mode: Mode) { if !removeHere(timer, mode) { part(timer, mode) } }

  /// Whether a timer is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// Any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopContainsTimer`.
  public func contains(_ timer: Timer, forMode mode: Mode) -> Bool { holds(timer, mode) }
}

extension RunLoop {
  /// Adds an observer to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// An observer is bound to one loop at a time. Added during a stage, it is called from the next stage on. O(n) in the observers
  /// of each mode. Any thread.
  ///
  /// - Returns: False if the observer was refused: it is invalid, bound to another loop, or this loop's thread has ended.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddObserver`.
  @discardableResult
  public func add(_ observer: Observer, forMode mode: Mode) -> Bool { join(observer, mode) }

  /// Removes an observer from a mode, or, for ``Mode/common``, a common observer from every common mode.
  ///
  /// It stays valid. Removed during a stage that has yet to call it, it is still called once. O(n) in the observers of each mode. Any thread. The corresponding Core Foundation function is
  /// `CFRunLoopRemoveObserver`.
  public func remove(_ observer: Observer, forMode mode: Mode) { part(observer, mode) }

  /// Whether an observer is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// Any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopContainsObserver`.
  public func contains(_ observer: Observer, forMode mode: Mode) -> Bool { holds(observer, mode) }
}

extension RunLoop {
  /// Adds a descriptor source to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// The first of a mode makes an epoll set for it, and the last to leave gives it back. A sleeping loop takes the source into
  /// account at once. Any thread.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is not open (`EBADF`) or cannot be waited for, as
  ///   a regular file cannot (`EPERM`), or if the process has no descriptor left for the set (`EMFILE`, `ENFILE`);
  ///   ``RunLoopError/invalidSource``, ``RunLoopError/loopHasEnded``. The source is in no further mode then.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddSource`.
  public func add(_ source: DescriptorSource, forMode mode: Mode) throws(RunLoopError) {
    guard let refusal = attempt(source, mode) else { return tellOfItem(mode) }
    _ = refuse(refusal)
    switch refusal {
    case .system(let error): throw .cannotWatch(descriptor: source.descriptor, error)
    case .endedLoop: throw .loopHasEnded
    case .invalidItem, .boundItem, .noMode: throw .invalidSource
    }
  }

  /// Removes a descriptor source from a mode, or, for ``Mode/common``, a common source from every common mode.
  ///
  /// What was found ready is not served any more. Any thread. The corresponding Core Foundation function is
  /// `CFRunLoopRemoveSource`.
  public func remove(_ source: DescriptorSource, forMode mode: Mode) { part(source, mode) }

  /// Whether a descriptor source is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// Any thread. The corresponding Core Foundation function is `CFRunLoopContainsSource`.
  public func contains(_ source: DescriptorSource, forMode mode: Mode) -> Bool { holds(source, mode) }
}
