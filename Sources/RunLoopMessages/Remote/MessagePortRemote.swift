// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

extension MessagePort {
  /// A port for sending messages to a ``Local`` port, found by its name, in the same or another process.
  ///
  /// It represents a connection to one ``Local`` port. When that port is invalidated or its process dies, this port
  /// becomes permanently invalid: waiting requests fail with ``MessagePortError/peerClosed``, and unconfirmed one-way
  /// messages are reported. Create another port to connect to the next owner of the name.
  ///
  /// A one-way message is received at most once. The receiver confirms messages in batches. Those that are unconfirmed
  /// when the connection ends are passed to the closure `undelivered`.
  ///
  /// Messages can be sent from any thread. The death of the other end is noticed by a thread that waits for a reply or
  /// sends, by a loop that the port was added to, and, if there is an observer or `undelivered`, by a thread of this
  /// package.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateRemote`.
  public final class Remote: @unchecked Sendable {
    // Sendable: the lock guards `state` and the watch flags. The role of the reading thread, which the lock passes on,
    // guards `reader`, `socketTimeout`, `looker`, `lookingThread` and `lastAnswer`.

    /// The name of the port that this one is connected to.
    public let name: String
    /// The credentials of the process at the other end.
    public let peer: Credentials
    /// The maximum size in bytes of messages to send and of replies.
    public let maximumMessageSize: Int

    let socket: Descriptor
    let lock = ProcessLock()
    // Exclusivity is not checked: the lock guards it, and no code called with the lock held accesses it again.
    @exclusivity(unchecked) var state = RemoteState()
    let reader = MessageReader()
    /// The socket's read timeout in nanoseconds; used only by the reading thread.
    @exclusivity(unchecked) var socketTimeout: Int64 = 0
    /// Decides whether the reading thread polls before it sleeps, for the thread that last read.
    ///
    /// If a thread has ended and another one reuses its number, the new thread inherits its state for a thousand waits.
    @exclusivity(unchecked) var looker = Looker()
    @exclusivity(unchecked) var lookingThread: pthread_t = 0
    /// The time at which the last reply was sent, as recorded in the reply that the reading thread has read.
    @exclusivity(unchecked) var answerTime: Int32?
    /// Changes when threads that wait for the reading thread have to check again; relaxed loads suffice with the lock
    /// held, because the kernel compares the value again before a thread sleeps.
    let readWord = Atomic<UInt32>(0)
    let undelivered: (@Sendable (Undelivered) -> Void)?
    var isWatchedForReplies = false
    var isWatchedForEnd = false

    /// Connects to a named port.
    ///
    /// - Parameters:
    ///   - name: The port's name.
    ///   - limit: The time to wait for a port of that name, which blocks the calling thread; zero by default. A task
    ///     can wait with
    ///     ``connection(to:waitingFor:directory:maximumMessageSize:connectTimeout:accepts:undelivered:)``.
    ///   - directory: The directory of the name; the user's own by default.
    ///   - maximumMessageSize: The maximum size in bytes of messages to send and of replies; 64 MiB by default.
    ///   - connectTimeout: The time to wait while the receiver has no room for another connection; 10 seconds by
    ///     default. With zero, this does not wait.
    ///   - accepts: Returns whether to trust the process at the other end. By default, it must belong to the same user.
    ///   - undelivered: Called on any thread, without a lock, for each one-way message that was not and will not be
    ///     confirmed.
    /// - Throws: ``MessagePortError/noSuchPort(_:)``, ``MessagePortError/invalidName(_:)``,
    ///   ``MessagePortError/pathTooLong(_:)``, ``MessagePortError/unsafeDirectory(_:_:)``,
    ///   ``MessagePortError/untrustedPeer(_:)``, ``MessagePortError/sendTimedOut``, or ``MessagePortError/system(_:)``.
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

    /// Permanently invalidates the port.
    ///
    /// Waiting requests fail with ``MessagePortError/invalid``. Can be called from any thread. Calling it again has no
    /// effect.
    public func invalidate() { finish(.invalid) }

    /// Calls a closure once when the port becomes invalid, on the thread that notices, or at once if it is already
    /// invalid.
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

    /// Wraps the closure for undelivered messages in a structure whose name identifies the call in a recording.
    struct UndeliveredHandler {
      let call: @Sendable (Undelivered) -> Void
    }

    /// Counts of the port's messages.
    package struct Statistics: Hashable, Sendable {
      /// The number of messages sent.
      package internal(set) var sentCount = 0
      /// The number of one-way messages that the receiver has confirmed.
      package internal(set) var confirmedCount = 0
      /// The number of one-way messages that were reported as undelivered.
      package internal(set) var undeliveredCount = 0
      /// The number of replies that a caller was waiting for.
      package internal(set) var replyCount = 0
      /// The number of replies and rejections that no caller was waiting for any longer.
      package internal(set) var lateReplyCount = 0
      /// The number of packets that violated the protocol.
      package internal(set) var malformedCount = 0
    }

    /// The counts of the port's messages so far; can be used from any thread.
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
      // The shortest timeout is a tick of the kernel's clock, so connect without blocking. `fcntl` cannot fail here.
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

  /// Invalidates the port, and notifies waiting requests and observers.
  ///
  /// - Parameter isCallOut: Whether this was called by a loop rather than by a function of the user.
  func finish(_ reason: MessagePortError, tellsObservers: Bool = true, isCallOut: Bool = false) {
    // A child must not end its parent's connection. Its copies of the descriptors are closed with this object.
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
    // Wakes a thread that is blocked in a read.
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
