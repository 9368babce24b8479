// SPDX-License-Identifier: Apache-2.0

import Synchronization

// Changing a source's events while it stays in its modes.
extension RunLoop.DescriptorSource {
  /// The events that a source waits for, and whether it is paused.
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
  /// Can be read from any thread.
  public var events: Events { interest.load(ordering: .relaxed).events }

  /// Whether the source is paused, initially `false`.
  ///
  /// Can be read from any thread.
  public var isPaused: Bool { interest.load(ordering: .relaxed).isPaused }

  /// Changes the events that the source waits for.
  ///
  /// The source stays in its modes, and stays paused if it is paused. If the descriptor was already found ready, only
  /// the new events are served. The change makes one system call for each mode that the source is in, and none if
  /// nothing changes. Can be called from any thread. A sleeping loop takes the change into account immediately.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is no longer open (`EBADF`) or the system
  ///   is out of memory; the source then waits for the same events as before. ``RunLoopError/invalidSource`` if the
  ///   source has been invalidated.
  public func setEvents(_ events: Events) throws(RunLoopError) {
    try change { Interest(events: events, isPaused: $0.isPaused) }
  }

  /// Stops waiting for events, including errors and hang-ups.
  ///
  /// The source stays in its modes and keeps them alive, but it adds no cost and is not called until ``resume()``. A
  /// running call-out is not interrupted. Pausing makes one system call for each mode that the source is in. Can be
  /// called from any thread. Calling it again, or on an invalid source, has no effect.
  public func pause() {
    // Removal from an epoll set cannot fail for lack of resources.
    try? change { Interest(events: $0.events, isPaused: true) }
  }

  /// Makes a paused source wait for its events again.
  ///
  /// Events that are ready now are served. Resuming makes one system call for each mode that the source is in. Can be
  /// called from any thread. Calling it again has no effect.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is no longer open (`EBADF`), does not
  ///   support epoll (`EPERM`), or the system lacks resources (`ENOMEM`, `ENOSPC`); the source then stays paused.
  ///   ``RunLoopError/invalidSource`` if the source has been invalidated.
  public func resume() throws(RunLoopError) {
    try change { Interest(events: $0.events) }
  }

  /// Resumes the source with the given events, or pauses it if `events` is `nil`.
  ///
  /// Throws the same errors as ``resume()``.
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

  /// Updates the events in every epoll set, and returns the first error; requires the item's lock.
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
