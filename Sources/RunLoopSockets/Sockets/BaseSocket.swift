// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// What all sockets have in common: a descriptor that they own, and the modes of loops that serve it.
///
/// ``Socket``, ``ListeningSocket`` and ``DatagramSocket`` are its subclasses. A loop holds the sockets that are in it;
/// a socket that is in no loop and that nothing else holds is closed.
///
/// The corresponding Core Foundation type is `CFSocket`.
public class BaseSocket: @unchecked Sendable {
  // Sendable: all that changes is guarded by the lock.

  final let lock = ProcessLock()
  /// The file of a Unix address, which is removed when the socket is closed.
  final let file: SocketFile?

  // Guarded by the lock, under which nothing is called out: so no access meets another, and none is checked for that.

  @exclusivity(unchecked) final var descriptor: OwnedDescriptor?
  @exclusivity(unchecked) final var registrations = Registrations()
  /// The thread that responds to an event and calls the handler, or zero.
  @exclusivity(unchecked) final var responder: pthread_t = 0
  /// The number of the last wait of a task.
  final var lastWait: UInt64 = 0

  /// Whether a task has ever waited; used without the lock.
  final let hasBeenAwaited = Atomic<Bool>(false)

  init(_ descriptor: OwnedDescriptor, _ file: SocketFile? = nil) {
    self.descriptor = descriptor
    self.file = file
  }

  deinit {
    // The file of a parent is the parent's.
    if descriptor != nil, !lock.isParents { file?.remove() }
  }

  // What a kind of socket defines. Each requires the lock, but for `ready` and the package's.

  /// What is waited for at the descriptor now; nil means nothing.
  var interest: RunLoop.DescriptorSource.Events? { nil }

  /// Whether the socket is closed, or its handler is yet to be notified of the end.
  var isOver: Bool { descriptor == nil }

  /// The address of the handler's function, or zero.
  var handlerCode: UInt64 { 0 }

  /// The part of a description that follows the descriptor.
  var details: String { "" }

  /// The socket was added to another mode.
  func hasEntered() {}

  /// The system cannot watch the descriptor.
  func cannotWatch(_ error: RunLoopError) {}

  /// Responds to what the descriptor is ready for, on a loop's thread, without the lock.
  ///
  /// Without events it reports the end that has been noted.
  func ready(_ events: RunLoop.DescriptorSource.Events) {
    let thread = pthread_self()
    lock.lock()
    // Of several loops one responds at a time; a run nested in the handler does too.
    guard responder == 0 || responder == thread else { return lock.unlock() }
    let outer = responder
    responder = thread
    let isOver = serve(events)
    responder = outer
    if isOver { reportEnd() } else { lock.unlock() }
  }

  /// Does the work of ``ready(_:)``, and returns whether the socket is over; call-outs are made without the lock.
  func serve(_ events: RunLoop.DescriptorSource.Events) -> Bool { false }

  /// Unlocks, ends a socket that is over, and notifies its handler, unless that was done before.
  func reportEnd() { lock.unlock() }

  /// Ends the socket and returns what is to be released without the lock; nil if that was done before.
  ///
  /// - Parameter isInvalidated: Whether what was received and not taken is dropped too.
  func finish(isInvalidated: Bool) -> Remains? { nil }

  /// What waiting tasks get when the socket is invalidated; nil means the end.
  var invalidationError: (any Error)? { nil }

  /// Ends all waits of tasks; each closure is to be called with an error, without the lock.
  func takeWaits() -> [(any Error) -> Void] { [] }

  /// Why a task cannot wait, in the words of the kind.
  func waitError(_ rejection: WaitRejection) -> any Error { RunLoopError.invalidSource }

  package var keepAliveKind: KeepAliveKind { .descriptor }

  package var keepAliveDetail: String { "" }
}

extension BaseSocket: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// A socket may be in several modes of several loops; the timeouts of a ``Socket`` count as long as it is in one. It
  /// stays open in no loop as long as a reference to it is kept.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is over, and the errors of adding a descriptor source.
  ///
  /// The corresponding Core Foundation functions are `CFSocketCreateRunLoopSource` and `CFRunLoopAddSource`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .add: try join(loop, mode)
    case .remove:
      lock.releasing { registrations.leave(loop, mode) }
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
    hasEntered()
    if isOver { postEnd() }
    lock.unlock()
    withExtendedLifetime(source) {}
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
  /// Bytes that wait to be sent are dropped: to send them, use ``Socket/shutDown(_:)`` and wait for the end.
  /// Connections that wait in the system to be accepted are closed, and datagrams are dropped. A task that waits for a
  /// connection or a datagram gets nil, another ``SocketError/invalid`` or ``DatagramError/invalid``. Can be called
  /// from any thread. Calling it again has no effect.
  public func invalidate() {
    guard lock.lockUnlessParents() else { return }
    unlock(releasing: finish(isInvalidated: true), invalidationError)
  }

  /// Calls a closure with the socket's descriptor, for what this library does not wrap, such as joining a group.
  ///
  /// The descriptor stays open until the closure returns, even if the socket is closed meanwhile. It belongs to the
  /// socket: the closure neither closes it, nor reads or writes, nor makes it block. Can be called from any thread;
  /// the closure is called on the same thread, under no lock.
  ///
  /// - Returns: The closure's result; nil if the socket is closed, and the closure is not called.
  public func withDescriptor<Result, Failure: Error>(
    _ body: (Int32) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let descriptor = openDescriptor else { return nil }
    defer { withExtendedLifetime(descriptor) {} }
    return try body(descriptor.number)
  }

  /// The descriptor, which a reference keeps open.
  var openDescriptor: OwnedDescriptor? { lock.ifOwned(else: nil) { descriptor } }

  /// Updates what the source waits for, if it is something else now.
  ///
  /// Requires the lock.
  @inline(__always)
  func watch(for events: RunLoop.DescriptorSource.Events?) {
    guard let source = registrations.source, source.isPaused ? events != nil : events != source.events else { return }
    do throws(RunLoopError) {
      try source.watch(for: events)
    } catch {
      // An invalid source is one of a socket that is being closed.
      if error != .invalidSource { cannotWatch(error) }
    }
  }

  /// Has a loop report that the socket is over.
  ///
  /// Requires the lock.
  func postEnd() {
    // A thread that responds to an event looks for the end when that is done.
    guard responder == 0 else { return }
    _ = post { [self] in ready([]) }
  }

  /// Unlocks, ends the socket, and notifies its handler, which finds the descriptor closed.
  func end(_ error: (any Error)?, _ notify: () -> Void) {
    unlock(releasing: finish(isInvalidated: false), error)
    notify()
  }

  /// Unlocks, and releases what a socket had that is over.
  func unlock(releasing remains: consuming Remains?, _ error: (any Error)?) {
    lock.unlock()
    remains?.release(error)
  }

  /// Leaves all modes and gives the descriptor up.
  ///
  /// Requires the lock.
  ///
  /// - Parameter resume: Resumes the tasks that wait with an error, or with the end; it holds what else is released
  ///   without the lock, after the descriptor.
  func takeRemains(_ resume: @escaping ((any Error)?) -> Void) -> Remains {
    defer { descriptor = nil }
    return Remains(
      source: registrations.removeAll(),
      timers: [registrations.replaceTimer(nil), registrations.replaceTimer(nil, \.secondTimer)],
      file: file, descriptor: descriptor, resume: resume)
  }

  /// What a socket had that is over.
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
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    lock.ifOwned(else: "<\(type(of: self))>{of the parent process}") {
      "<\(type(of: self)) \(Unmanaged.passUnretained(self).toOpaque())>{descriptor = \(descriptor?.number ?? -1), "
        + details + "}"
    }
  }
}

// What it is for those who ask what keeps a loop.
extension BaseSocket: CarriedItem {
  package var keepAliveCode: UInt64 { lock.ifOwned(else: 0) { handlerCode } }
}

extension SocketKind {
  /// Has a timer that fires once after a time, wherever the socket is, unless it is replaced before.
  ///
  /// Requires the lock.
  ///
  /// - Parameters:
  ///   - place: The place of the timer, which is empty.
  ///   - time: The time from now on.
  ///   - body: Called on a loop's thread with the lock held, when the timer has left its place.
  ///   - next: Called after that without the lock.
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
