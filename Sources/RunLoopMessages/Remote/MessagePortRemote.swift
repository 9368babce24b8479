// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

extension MessagePort {
  /// A port of this or another process, found by its name, to which messages are sent.
  ///
  /// It is a connection to one ``Local`` port. When that is invalidated or its process dies, this port becomes invalid
  /// permanently: every reply that is awaited ends with ``MessagePortError/peerClosed``, and every one-way message that
  /// was not confirmed is reported. Make a new one to talk to the name's next owner.
  ///
  /// A one-way message is received at most once; the receiver confirms what it has received, many at a time. What it
  /// has not confirmed when the connection ends goes to the closure `undelivered`.
  ///
  /// Any thread may send. The death of the other end is noticed by a thread that waits for a reply or sends, by a loop
  /// that the port was added to, and, if an observer or `undelivered` wants to know, by a thread of the package's own.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateRemote`.
  public final class Remote: @unchecked Sendable {
    // Sendable: `state` and what says whether the port is watched are guarded by the lock, `reader` and the variables
    // after it by the role of the reading thread.

    /// The name.
    public let name: String
    /// Who is at the other end.
    public let peer: Credentials
    /// The longest message to send and the longest reply to take, in bytes.
    public let maximumMessageSize: Int

    let socket: Descriptor
    let lock = ProcessLock()
    // Not checked for exclusive access: the lock guards it, and nothing that is called under it calls back.
    @exclusivity(unchecked) var state = RemoteState()
    let reader = MessageReader()
    /// The time-out that the socket has for reading, in nanoseconds; the reading thread's.
    @exclusivity(unchecked) var socketTimeout: Int64 = 0
    /// Whether the reading thread looks before it sleeps, and which thread that was last.
    ///
    /// It may be one that has ended and whose number the thread has: its place is then kept for a thousand waits.
    @exclusivity(unchecked) var looker = Looker()
    @exclusivity(unchecked) var lookingThread: pthread_t = 0
    /// The header of the last answer that the reading thread has read.
    @exclusivity(unchecked) var lastAnswer: MessageFrame?
    /// Changes when threads that follow the reading one have to look again.
    ///
    /// Relaxed where it is read under the lock; the kernel compares it again before a thread sleeps.
    let readWord = Atomic<UInt32>(0)
    let undelivered: (@Sendable (Undelivered) -> Void)?
    var isWatchedForReplies = false
    var isWatchedForEnd = false

    /// Connects to the port that has a name.
    ///
    /// - Parameters:
    ///   - name: The port's name.
    ///   - limit: How long to wait for a port of that name, if there is none yet. The calling thread is blocked
    ///     meanwhile; a task waits with
    ///     ``connection(to:waitingFor:directory:maximumMessageSize:connectTimeout:accepts:undelivered:)``.
    ///   - directory: Where the names are.
    ///   - maximumMessageSize: The longest message to send and the longest reply to take, in bytes.
    ///   - connectTimeout: How long to wait if the receiver has no room for one more connection now. Zero means not at
    ///     all.
    ///   - accepts: Whether to talk to the process that has the name; only to the same user's by default.
    ///   - undelivered: Called on any thread, without a lock, for each one-way message that is not confirmed and will
    ///     not be.
    /// - Throws: ``MessagePortError/noSuchPort(_:)``, ``MessagePortError/invalidName(_:)``,
    ///   ``MessagePortError/pathTooLong(_:)``, ``MessagePortError/unsafeDirectory(_:_:)``,
    ///   ``MessagePortError/untrustedPeer(_:)``, ``MessagePortError/sendTimedOut``, ``MessagePortError/system(_:)``.
    public init(
      name: String, waitingFor limit: Duration = .zero, directory: Directory = .user,
      maximumMessageSize: Int = 64 << 20, connectTimeout: Duration = .seconds(10),
      accepts: (Credentials) -> Bool = { $0.isSameUser }, undelivered: (@Sendable (Undelivered) -> Void)? = nil
    ) throws(MessagePortError) {
      self.name = name
      self.maximumMessageSize = maximumMessageSize
      self.undelivered = undelivered
      socket = try Self.connect(to: name, in: directory, connectTimeout, waitingFor: limit)
      peer = try Credentials(of: socket)
      guard accepts(peer) else { throw .untrustedPeer(peer) }
      if undelivered != nil { try watchForEnd() }
    }

    deinit { finish(.invalid, tellsObservers: false) }

    /// Whether messages can still be sent, as far as is known.
    ///
    /// Can be used from any thread.
    public var isValid: Bool { lock.ifOwned(else: false) { state.end == nil } }

    /// Ends the port permanently.
    ///
    /// Whoever waits for a reply gets ``MessagePortError/invalid``. Can be called from any thread. Calling it again has
    /// no effect.
    public func invalidate() { finish(.invalid) }

    /// Calls a closure when the port becomes invalid, once, on the thread that notices; at once if it is invalid
    /// already.
    ///
    /// - Throws: ``MessagePortError/runLoop(_:)`` if the process has no descriptor left for watching the other end.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortSetInvalidationCallBack`.
    public func observeInvalidation(_ body: @escaping @Sendable (Remote) -> Void) throws(MessagePortError) {
      try watchForEnd()
      let isOver = lock.ifOwned(else: true) {
        if state.end == nil { state.observers.append(.init(call: body)) }
        return state.end != nil
      }
      if isOver { body(self) }
    }

    struct InvalidationObserver {
      let call: @Sendable (Remote) -> Void
    }

    /// What is called with a message that was not delivered, so that a record names it.
    struct UndeliveredHandler {
      let call: @Sendable (Undelivered) -> Void
    }

    /// What has become of the port's messages.
    package struct Statistics: Hashable, Sendable {
      /// The messages that were sent.
      package internal(set) var sentCount = 0
      /// The one-way messages that the receiver has confirmed.
      package internal(set) var confirmedCount = 0
      /// The one-way messages that were reported as not delivered.
      package internal(set) var undeliveredCount = 0
      /// The replies that somebody waited for.
      package internal(set) var replyCount = 0
      /// Replies and rejections that arrived after no caller waited for them.
      package internal(set) var lateReplyCount = 0
      /// The packets that broke the protocol.
      package internal(set) var malformedCount = 0
    }

    /// What has become of the port's messages so far.
    ///
    /// Can be used from any thread.
    package var statistics: Statistics { lock.ifOwned(else: Statistics()) { state.statistics } }
  }
}

extension MessagePort.Remote {
  static func connect(
    to name: String, in directory: MessagePort.Directory, _ timeout: Duration
  ) throws(MessagePortError) -> MessagePort.Descriptor {
    try directory.check(name)
    let place: OwnedDescriptor
    do throws(MessagePortError) {
      place = try directory.open(making: false)
    } catch {
      if case .system(let error) = error, error.number == ENOENT { throw .noSuchPort(name) }
      throw error
    }
    do throws(SystemError) {
      let socket = MessagePort.Descriptor(
        owning: try SystemCall.socket.make { crl_message_socket() }, .connection)
      let limit = min(max(1000, Int64(saturating: timeout)), 1 << 60)
      _ = try SystemCall.socketOption.make { crl_message_set_timeout(socket.number, 1, limit) }
      // The shortest time-out is a tick of the kernel's clock. Neither call fails with an open socket.
      let blocks = timeout > .zero
      if !blocks { _ = fcntl(socket.number, F_SETFL, O_NONBLOCK) }
      _ = try SystemCall.connect.makeUninterrupted { crl_placed_connect(socket.number, place.number, name) }
      if !blocks { _ = fcntl(socket.number, F_SETFL, 0) }
      return socket
    } catch {
      switch (error.call, error.number) {
      case ("connect", ENOENT), ("connect", ECONNREFUSED), ("connect", ENOTSOCK): throw .noSuchPort(name)
      case ("connect", EAGAIN): throw .sendTimedOut
      default: throw .system(error)
      }
    }
  }

  /// Ends the port and notifies everybody.
  ///
  /// - Parameter isCallOut: Whether a loop has called, and not a user's function.
  func finish(_ reason: MessagePortError, tellsObservers: Bool = true, isCallOut: Bool = false) {
    // The connection is not for a child to end: it has copies of the parent's, which go with this object.
    guard lock.lockUnlessParents() else { return }
    guard state.end == nil else { return lock.unlock() }
    state.end = reason
    let sources = state.registrations.removeAll()
    var wakes: [(@Sendable (ReplyWaiter.Outcome) -> Void)] = []
    for waiter in state.pending.removeAll() {
      waiter.outcome = .failure(reason)
      if let wake = waiter.wake { wakes.append(wake) }
    }
    let lost = state.unconfirmed.removeAll()
    state.statistics.undeliveredCount += lost.count
    state.hasLostMessages = !lost.isEmpty
    let observers = state.observers.takeAll()
    lock.unlock()
    for source in sources { source.invalidate() }
    // Ends the wait of a thread that reads.
    _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
    readWord.wrappingAdd(1, ordering: .releasing)
    readWord.futexWake(.max)
    for wake in wakes { wake(.failure(reason)) }
    if let undelivered {
      if isCallOut, !lost.isEmpty { noteCall(of: UndeliveredHandler(call: undelivered)) }
      for message in lost {
        undelivered(MessagePort.Undelivered(serial: message.token, id: message.id, reason: reason))
      }
    }
    guard tellsObservers else { return }
    for observer in observers {
      if isCallOut { noteCall(of: observer) }
      observer.call(self)
    }
  }
}
