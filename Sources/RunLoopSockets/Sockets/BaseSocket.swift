// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// The base class of all sockets: an owned descriptor and the run loop modes that serve it.
///
/// Its subclasses are ``Socket``, ``ListeningSocket`` and ``DatagramSocket``. A loop retains the sockets that were
/// added to it. A socket that is in no loop is closed when its last reference is released.
///
/// The corresponding Core Foundation type is `CFSocket`.
public class BaseSocket: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  final let lock = ProcessLock()
  /// The file of a Unix address, which is removed when the socket is closed.
  final let file: SocketFile?

  // Guarded by the lock. No call-out is made while it is held, so accesses cannot overlap and exclusivity is not
  // checked.

  @exclusivity(unchecked) final var descriptor: OwnedDescriptor?
  @exclusivity(unchecked) final var registrations = Registrations()
  /// The thread that is responding to an event or calling the handler, or zero.
  @exclusivity(unchecked) final var responder: pthread_t = 0
  /// Whether the handler has removed the socket from the responder's loop, which does not call it again.
  @exclusivity(unchecked) final var isAway = false
  final var lastWait: UInt64 = 0

  /// Whether a task has ever waited; used without the lock.
  final let hasBeenAwaited = Atomic<Bool>(false)

  init(_ descriptor: OwnedDescriptor, _ file: SocketFile? = nil) {
    self.descriptor = descriptor
    self.file = file
  }

  deinit {
    // In a forked child, the file still belongs to the parent.
    if descriptor != nil, !lock.isParents { file?.remove() }
  }

  // Overridden by subclasses. All except `ready` and the package-level properties require the lock.

  /// The events to watch for on the descriptor now, or `nil` for none.
  var interest: RunLoop.DescriptorSource.Events? { nil }

  /// Whether the socket is closed or is waiting to report its end.
  var isOver: Bool { descriptor == nil }

  /// The address of the handler's function, or zero.
  var handlerCode: UInt64 { 0 }

  /// The part of the debug description that follows the descriptor.
  var details: String { "" }

  /// Called after the socket was added to another mode, or moved by its handler.
  func hasEntered() {}

  /// Called when the system cannot watch the descriptor.
  func cannotWatch(_ error: RunLoopError) {}

  /// Responds to the descriptor's events or, without events, reports an end that was recorded earlier; called on a
  /// loop's thread without the lock.
  func ready(_ events: RunLoop.DescriptorSource.Events) {
    let thread = pthread_self()
    lock.lock()
    // If the socket is in several loops, only one responds at a time. A nested run in the handler may respond too.
    guard responder == 0 || responder == thread else { return lock.unlock() }
    let outer = responder
    responder = thread
    let isOver = serve(events)
    responder = outer
    if isOver, !isAway { return reportEnd() }
    if isAway, outer == 0 {
      isAway = false
      // Another loop, which has the socket now, may have waited for this one.
      postEvents()
    }
    lock.unlock()
  }

  /// Does the work of ``ready(_:)``, releasing the lock during call-outs, and returns whether the socket is over.
  func serve(_ events: RunLoop.DescriptorSource.Events) -> Bool { false }

  /// Releases the lock and, if the socket is over, ends it and notifies the handler, unless that was already done.
  func reportEnd() { lock.unlock() }

  /// Ends the socket and returns the resources to release without the lock, or `nil` if that was already done.
  ///
  /// - Parameter isInvalidated: Whether data that was received but not taken is dropped too.
  func finish(isInvalidated: Bool) -> Remains? { nil }

  /// The error that waiting tasks get when the socket is invalidated; with `nil`, they get the end of the stream.
  var invalidationError: (any Error)? { nil }

  /// Ends the waits of all tasks and returns closures that fail them; call each without the lock.
  func takeWaits() -> [(any Error) -> Void] { [] }

  /// Returns the subclass's error for a wait that was rejected.
  func waitError(_ rejection: WaitRejection) -> any Error { RunLoopError.invalidSource }

  package var keepAliveKind: KeepAliveKind { .descriptor }

  package var keepAliveDetail: String { "" }
}

extension BaseSocket: RunLoopItem {
  /// Adds the socket to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// A socket can be in several modes of several loops. The timeouts of a ``Socket`` count while it is in at least
  /// one. A socket that is in no loop stays open as long as it is referenced.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is over, and the errors of adding a descriptor source.
  ///
  /// The corresponding Core Foundation functions are `CFSocketCreateRunLoopSource` and `CFRunLoopAddSource`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .add: try join(loop, mode)
    case .remove:
      lock.releasing {
        let source = registrations.leave(loop, mode)
        noteMove()
        return source
      }
      if isAwaited { endWaitsIfUnserved() }
    case .contains:
      let source = lock.ifOwned(else: nil) { registrations.source }
      return source.map { loop.contains($0, forMode: mode) } ?? false
    }
    return true
  }

  private func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    guard lock.lockUnlessParents() else { throw .invalidSource }
    guard let source = registrations.source ?? makeSource() else {
      lock.unlock()
      throw .invalidSource
    }
    do throws(RunLoopError) {
      try registrations.enter(loop, mode, source)
    } catch {
      lock.unlock()
      throw withExtendedLifetime(source) { error }
    }
    noteMove()
    postEvents()
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  private func noteMove() { if responder == pthread_self() { isAway = !registrations.isHere } }

  /// Makes the socket's loops report what they would not notice by its descriptor.
  private func postEvents() {
    hasEntered()
    if isOver { postEnd() }
  }

  private func makeSource() -> RunLoop.DescriptorSource? {
    guard let descriptor else { return nil }
    let (presence, interest) = (Presence(self), interest)
    let source = RunLoop.DescriptorSource(
      descriptor: descriptor.number, events: interest ?? [], carrying: presence
    ) { _, events in presence.item.ready(events) }
    if interest == nil { source.pause() }
    return source
  }
}

extension BaseSocket {
  /// Whether the socket is neither closed nor invalidated.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { lock.ifOwned(else: false) { !isOver } }

  /// Closes the socket at once: it leaves all modes, and its handler is not called again.
  ///
  /// Bytes waiting to be sent are dropped. To send them first, call ``Socket/shutDown(_:)`` and wait for the end.
  /// Connections waiting to be accepted are closed, and queued datagrams are dropped. A task that is waiting for a
  /// connection or a datagram gets `nil`; any other task gets ``SocketError/invalid`` or ``DatagramError/invalid``.
  /// Can be called from any thread. Calling it again has no effect.
  public func invalidate() {
    guard lock.lockUnlessParents() else { return }
    unlock(releasing: finish(isInvalidated: true), invalidationError)
  }

  /// Calls a closure with the socket's descriptor, for operations that this library does not wrap, such as joining
  /// a multicast group.
  ///
  /// The descriptor stays open until the closure returns, even if the socket is closed in the meantime. The socket
  /// still owns it, so the closure must not close it, read from it, write to it or make it blocking. Can be called
  /// from any thread; the closure is called on the same thread, without a lock.
  ///
  /// - Returns: The closure's result, or `nil` if the socket is closed and the closure was not called.
  public func withDescriptor<Result, Failure: Error>(
    _ body: (Int32) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let descriptor = openDescriptor else { return nil }
    defer { withExtendedLifetime(descriptor) {} }
    return try body(descriptor.number)
  }

  /// The descriptor, which stays open as long as the returned reference is held.
  var openDescriptor: OwnedDescriptor? { lock.ifOwned(else: nil) { descriptor } }

  /// Updates the set of events that the source watches for, if it has changed; requires the lock.
  @inline(__always)
  func watch(for events: RunLoop.DescriptorSource.Events?) {
    guard let source = registrations.source, source.isPaused ? events != nil : events != source.events else { return }
    do throws(RunLoopError) {
      try source.watch(for: events)
    } catch {
      // The source is invalid only if the socket is being closed.
      if error != .invalidSource { cannotWatch(error) }
    }
  }

  /// Asks a loop to report that the socket is over; requires the lock.
  func postEnd() {
    // A thread that is responding to an event reports the end when it is done.
    guard responder == 0 else { return }
    _ = post { [self] in ready([]) }
  }

  /// Releases the lock, ends the socket, and then calls `notify`, by which time the descriptor is closed.
  func end(_ error: (any Error)?, _ notify: () -> Void) {
    unlock(releasing: finish(isInvalidated: false), error)
    notify()
  }

  /// Releases the lock and then the resources of a socket that is over.
  func unlock(releasing remains: consuming Remains?, _ error: (any Error)?) {
    lock.unlock()
    remains?.release(error)
  }

  /// Leaves all modes and returns the socket's resources; requires the lock.
  ///
  /// - Parameter resume: Resumes the waiting tasks with an error, or with the end of the stream. It also retains
  ///   whatever else is released without the lock, after the descriptor.
  func takeRemains(_ resume: @escaping ((any Error)?) -> Void) -> Remains {
    defer { descriptor = nil }
    return Remains(
      source: registrations.removeAll(),
      timers: [registrations.replaceTimer(nil), registrations.replaceTimer(nil, \.secondTimer)],
      file: file, descriptor: descriptor, resume: resume)
  }

  /// The resources of a socket that is over, released without the lock.
  struct Remains: ~Copyable {
    let source: RunLoop.DescriptorSource?
    let timers: [RegisteredTimer?]
    let file: SocketFile?
    let descriptor: OwnedDescriptor?
    let resume: ((any Error)?) -> Void

    /// Leaves the loops, resumes the tasks that wait, and closes the descriptor.
    consuming func release(_ error: (any Error)?, keepsFile: Bool = false) {
      source?.invalidate()
      for timer in timers { timer?.invalidate() }
      if !keepsFile { file?.remove() }
      resume(error)
    }
  }
}

extension BaseSocket: CustomDebugStringConvertible {
  /// The socket's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String {
    lock.ifOwned(else: "<\(type(of: self))>{of the parent process}") {
      "<\(type(of: self)) \(Unmanaged.passUnretained(self).toOpaque())>{descriptor = \(descriptor?.number ?? -1), "
        + details + "}"
    }
  }
}

// Describes the socket in reports of what keeps a loop running.
extension BaseSocket: CarriedItem {
  package var keepAliveCode: UInt64 { lock.ifOwned(else: 0) { handlerCode } }
}

extension SocketKind {
  /// Starts a one-shot timer on all loops that the socket is in; requires the lock.
  ///
  /// - Parameters:
  ///   - place: Where the timer is stored; must be empty.
  ///   - time: The time until the timer fires.
  ///   - body: Called on a loop's thread with the lock held, after the timer was removed from its place.
  ///   - next: Called after `body`, without the lock.
  func setTimer(
    _ place: Registrations.TimerPlace, after time: Duration, _ body: @escaping @Sendable (Self) -> Void,
    then next: @escaping @Sendable (Self) -> Void = { _ in }
  ) {
    let timer = RegisteredTimer(deadline: registrations.instant(after: time)) { [weak self] timer in
      guard let self else { return }
      lock.lock()
      guard registrations[keyPath: place]?.contains(timer) == true else { return lock.unlock() }
      let over = registrations.replaceTimer(nil, place)
      body(self)
      lock.unlock()
      over?.invalidate()
      next(self)
    }
    registrations.replaceTimer(timer, place)
  }
}
