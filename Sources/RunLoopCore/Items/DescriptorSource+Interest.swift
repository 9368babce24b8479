// SPDX-License-Identifier: Apache-2.0

import Synchronization

// What a source waits for can change while it stays where it is.
extension RunLoop.DescriptorSource {
  /// What a source waits for, and whether it waits at all.
  struct Interest: RawRepresentable, Hashable, Sendable, AtomicRepresentable {
    let rawValue: UInt8

    private static let paused: UInt8 = 1 << 7

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(events: Events, isPaused: Bool = false) {
      rawValue = events.intersection([.readable, .writable, .hangUp, .error]).rawValue | (isPaused ? Self.paused : 0)
    }

    var events: Events { Events(rawValue: rawValue & ~Self.paused) }
    var isPaused: Bool { rawValue & Self.paused != 0 }
  }

  /// What the source waits for when it is not paused.
  ///
  /// Can be used from any thread.
  public var events: Events { interest.load(ordering: .relaxed).events }

  /// Whether the source is paused.
  ///
  /// Can be used from any thread.
  public var isPaused: Bool { interest.load(ordering: .relaxed).isPaused }

  /// Waits for other events from now on.
  ///
  /// The source stays in its modes, and paused if it is. What was found ready is served only as far as it is waited for
  /// now. It makes one system call for each mode that the source is in, and none if nothing changes. Can be called from
  /// any thread. A sleeping loop takes the change into account at once.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is open no more (`EBADF`) or the system
  ///   has too little memory; the source then waits for what it waited for before. ``RunLoopError/invalidSource``.
  public func setEvents(_ events: Events) throws(RunLoopError) {
    try change { Interest(events: events, isPaused: $0.isPaused) }
  }

  /// Stops waiting, for errors and hang-ups too.
  ///
  /// The source stays in its modes and keeps them alive, but it costs them nothing and is not called until
  /// ``resume()``. A call-out that runs is not stopped. It makes one system call for each mode that the source is in.
  /// Can be called from any thread. Calling it again, or on an invalid source, has no effect.
  public func pause() {
    // What leaves the kernel's set needs nothing.
    try? change { Interest(events: $0.events, isPaused: true) }
  }

  /// Waits again.
  ///
  /// What is ready now is served. It makes one system call for each mode that the source is in. Can be called from any
  /// thread. Calling it again has no effect.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is open no more (`EBADF`), cannot be
  ///   waited for (`EPERM`), or the system has too little for it (`ENOMEM`, `ENOSPC`); the source stays paused then.
  ///   ``RunLoopError/invalidSource``.
  public func resume() throws(RunLoopError) {
    try change { Interest(events: $0.events) }
  }

  /// Waits for these events and is not paused; nil: is paused.
  ///
  /// The errors are those of ``resume()``.
  package func watch(for events: Events?) throws(RunLoopError) {
    try change { Interest(events: events ?? $0.events, isPaused: events == nil) }
  }

  private func change(_ next: (Interest) -> Interest) throws(RunLoopError) {
    lock.lock()
    guard isOpen else {
      lock.unlock()
      throw .invalidSource
    }
    let old = interest.load(ordering: .relaxed)
    let new = next(old)
    var failure: SystemError?
    if new != old {
      interest.store(new, ordering: .relaxed)
      failure = refresh()
      if failure != nil {
        interest.store(old, ordering: .relaxed)
        _ = refresh()
      }
    }
    lock.unlock()
    if let failure { throw .cannotWatch(descriptor: descriptor, failure) }
  }

  /// Tells every set what is waited for, and returns the first error; under the item's lock.
  private func refresh() -> SystemError? {
    var failure: SystemError?
    memberships.forEach { membership in
      do throws(SystemError) {
        try membership.loop.table.withLock { _ throws(SystemError) in
          try membership.mode.pollSet?.refresh(membership)
        }
      } catch {
        failure = failure ?? error
      }
    }
    return failure
  }
}
