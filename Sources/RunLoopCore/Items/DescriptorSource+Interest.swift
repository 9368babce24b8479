// SPDX-License-Identifier: Apache-2.0

import Synchronization

// The events of a source can change while it stays in its modes.
extension RunLoop.DescriptorSource {
  /// The events that a source waits for, and whether it waits at all.
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

  /// The events that the source waits for when it is not paused.
  ///
  /// Can be used from any thread.
  public var events: Events { interest.load(ordering: .relaxed).events }

  /// Whether the source is paused.
  ///
  /// Can be used from any thread.
  public var isPaused: Bool { interest.load(ordering: .relaxed).isPaused }

  /// Makes the source wait for other events from now on.
  ///
  /// The source stays in its modes, and stays paused if it is paused. If the descriptor was already found ready, only
  /// the events that are now waited for are served. The change makes one system call for each mode that the source is
  /// in, and none if nothing changes. Can be called from any thread. A sleeping loop takes the change into account at
  /// once.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is no longer open (`EBADF`) or the system
  ///   has too little memory; the source then waits for the same events as before. ``RunLoopError/invalidSource``.
  public func setEvents(_ events: Events) throws(RunLoopError) {
    try change { Interest(events: events, isPaused: $0.isPaused) }
  }

  /// Stops waiting, for errors and hang-ups too.
  ///
  /// The source stays in its modes and keeps them alive, but it costs them nothing and is not called until
  /// ``resume()``. A running call-out is not stopped. Pausing makes one system call for each mode that the source is
  /// in. Can be called from any thread. Calling it again, or on an invalid source, has no effect.
  public func pause() {
    // Leaving the kernel's set needs no resources.
    try? change { Interest(events: $0.events, isPaused: true) }
  }

  /// Makes a paused source wait again.
  ///
  /// Events that are ready now are served. Resuming makes one system call for each mode that the source is in. Can be
  /// called from any thread. Calling it again has no effect.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is no longer open (`EBADF`), cannot be
  ///   waited for (`EPERM`), or the system lacks the resources (`ENOMEM`, `ENOSPC`); the source then stays paused.
  ///   ``RunLoopError/invalidSource``.
  public func resume() throws(RunLoopError) {
    try change { Interest(events: $0.events) }
  }

  /// Waits for these events and is not paused; nil pauses the source.
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

  /// Updates the events in every epoll set, and returns the first error; called under the item's lock.
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
