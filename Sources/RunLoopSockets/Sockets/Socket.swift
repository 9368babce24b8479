// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A connection: bytes in both directions, between machines by TCP or within one by a Unix socket.
///
/// It is an item of a run loop: it can be in any number of modes, whose loop calls its handler when it is connected,
/// when bytes have arrived, when there is room to write, and when the connection has ended. Writing, shutting down and
/// closing work from any thread. A loop holds the sockets that are in it; a socket in no loop that nobody holds is
/// closed.
///
/// Instead of a handler, tasks may use ``receive(atMost:)`` and ``send(_:)-([UInt8])``; the socket must be in a loop
/// nevertheless.
///
/// The corresponding Core Foundation type is `CFSocket`.
public final class Socket: BaseSocket, @unchecked Sendable {
  // Sendable: all that changes is guarded by the lock.

  /// An event that a handler is called with.
  ///
  /// ``closed(_:)`` is the last event, and is reported exactly once unless the socket is invalidated before. An event
  /// is valid until the handler returns: the compiler rejects code that keeps it.
  public enum Event: ~Escapable, Sendable {
    /// The connection is made and, if TLS is used, secured; with TLS this is also reported for a socket that was
    /// accepted or secured later.
    case connected
    /// These bytes have arrived. They are in a buffer of the loop, which is reused when the handler returns: copy the
    /// bytes that you keep, as with `bytes.withUnsafeBytes { Array($0) }`.
    case received(RawSpan)
    /// There is something to read, or the end; reported once until ``Socket/read(into:)``.
    case readable
    /// There is room to write again, after a write that returned false or threw an error.
    case writable
    /// The peer has stopped writing; this is reported once, and the other direction stays open.
    case ended
    /// The socket is closed: both directions have ended, or an error has happened.
    case closed(SocketError?)
  }

  /// A handler of events, called on the thread of a loop that the socket is in, never by two threads at a time.
  public typealias Handler = @Sendable (Socket, Event) -> Void

  /// How a socket behaves.
  public struct Options: Sendable {
    /// How the handler gets the bytes.
    public enum Delivery: Hashable, Sendable {
      /// Each ``Socket/Event/received(_:)`` contains them, with one receive for each.
      case bytes
      /// ``Socket/Event/readable`` reports that there are bytes, and the handler reads as many as it likes.
      case readiness
    }

    /// How the handler gets the bytes.
    public var delivery = Delivery.bytes
    /// How long connecting may take, from when the socket is first added to a loop; nil means as long as the system
    /// tries.
    public var connectTimeout: Duration?
    /// How long nothing may be received or sent, from then or from the connection on; with nil, indefinitely.
    public var idleTimeout: Duration?
    /// How long nothing may arrive while something is waited for: neither reading is paused nor a task has to ask.
    ///
    /// After that the socket is closed with ``SocketError/idle(_:after:address:)`` of the side `read`; with nil it
    /// waits indefinitely.
    public var readTimeout: Duration?
    /// How long bytes may wait to be sent of which the system takes none, as the peer does not read.
    ///
    /// After that nothing more can be written, and the socket is closed with ``SocketError/idle(_:after:address:)`` of
    /// the side `write`, at once or, if something has arrived, when that was received. A peer that keeps sending is
    /// ended after the same time once more. With nil it waits indefinitely.
    public var writeTimeout: Duration?
    /// The number of queued bytes from which on writers are asked to wait, and further writes are rejected.
    public var highWater = 256 * 1024
    /// The number of queued bytes at which writers are notified that there is room.
    public var lowWater = 64 * 1024
    /// How many descriptors that a peer within this machine has passed may wait for ``Socket/takeDescriptors()``.
    ///
    /// Others are closed, and counted by ``Socket/droppedDescriptorCount``. If a peer passes hundreds of those, and
    /// closing them takes long, the socket is closed with ``SocketError/system(_:address:)`` and `ETOOMANYREFS`.
    public var maximumDescriptorCount = 0
    /// Options of the system, set in this order before the socket connects, or after it was accepted.
    ///
    /// TCP sends small amounts at once unless ``SocketOption/noDelay(_:)`` is here with false.
    public var socketOptions: [SocketOption] = []
    /// The context that secures the connection as soon as it is made or accepted; with nil, it is not secured.
    public var tls: TLSContext?
    /// The name that the server of a secured client connection has to have; with nil, its certificate has to be for the
    /// address.
    public var serverName: String?

    /// The usual behaviour.
    public init() {}
  }

  /// How the socket behaves.
  public let options: Options

  /// The address for errors: the peer's, or for a peer without one that at which it was accepted.
  let errorAddress: SocketAddress?

  // Guarded by the lock, as in the base.

  @exclusivity(unchecked) var state: SocketState
  @exclusivity(unchecked) var queue = ByteQueue()
  @exclusivity(unchecked) var body: Body?
  /// Whether the peer can pass descriptors: it is one within this machine.
  let receivesDescriptors: Bool
  @exclusivity(unchecked) var passed = PassedDescriptors()
  /// Of the descriptors that were dropped; made with the first.
  var closingCount: ClosingCount?
  /// Where the socket is to connect to as soon as the queue of the one that listens there has room.
  var awaitedAddress: SocketAddress?
  /// When what has a timeout began: connecting or the handshake.
  @exclusivity(unchecked) var lastActivity: Tick?
  @exclusivity(unchecked) var idle = IdleTimes()
  @exclusivity(unchecked) var reader = TaskWait<[UInt8]?>()
  var readerLimit = 0
  @exclusivity(unchecked) var writer = RoomWaits()
  /// Whether the reading side is to end as soon as the connection is made.
  var endsReading = false
  /// What encrypts and decrypts, if the connection is or will be secured.
  @exclusivity(unchecked) var tls: TLSSession?
  /// Whether a loop will look for what the session has.
  @exclusivity(unchecked) var hasPostedSession = false
  /// The place that the socket has among the connections of the listening socket that accepted it.
  var place: ConnectionPlace?

  /// A handler; in a structure of its own it is stored without a thunk.
  struct Body {
    let handler: Handler
  }

  /// Begins to connect to an address.
  ///
  /// If the queue of a listening Unix socket is full, the system neither connects nor waits. The socket then tries
  /// again every hundredth of a second while it is in a loop, until ``Options/connectTimeout`` has passed.
  ///
  /// - Parameters:
  ///   - address: The address to connect to.
  ///   - options: How the socket behaves.
  ///   - handler: Called when the socket is in a loop. It is released when the socket is closed or invalidated.
  /// - Throws: ``SocketError/system(_:address:)`` if the system reports an error at once: it has no descriptor left
  ///   (`EMFILE`), there is no route to the address (`ENETUNREACH`), or nobody listens on a Unix address (`ENOENT`,
  ///   `ECONNREFUSED`); ``SocketError/option(_:_:)``; ``SocketError/tls(_:)`` if ``Options/serverName`` is not a valid
  ///   name. Later errors are reported by an event.
  public init(connectingTo address: SocketAddress, options: Options = Options(), handler: Handler? = nil)
    throws(SocketError)
  {
    let descriptor: OwnedDescriptor
    let tls = try options.makeSession(connectingTo: address)
    do throws(SystemError) {
      descriptor = try OwnedDescriptor.makeStream(address)
      try descriptor.setNoDelay(address.family)
    } catch {
      throw .system(error, address: address)
    }
    try descriptor.set(options.socketOptions)
    do throws(SystemError) {
      if try !descriptor.connect(address) { awaitedAddress = address }
    } catch {
      throw .system(error, address: address)
    }
    errorAddress = address
    receivesDescriptors = address.family == .unix
    self.options = options
    self.tls = tls
    state = SocketState(isConnecting: true)
    state.awaitsRoom = awaitedAddress != nil
    body = handler.map(Body.init)
    super.init(descriptor)
    state.taker = handlerTaker
  }

  /// A connection that was accepted; with an error it is over, which its handler is yet to be notified.
  init(
    accepted descriptor: OwnedDescriptor, from address: SocketAddress, options: Options, place: ConnectionPlace?,
    error: SocketError?
  ) {
    errorAddress = address
    receivesDescriptors = address.family == .unix
    self.options = options
    self.place = place
    state = SocketState(isConnecting: false)
    super.init(descriptor)
    do throws(SocketError) {
      if let error { throw error }
      if let session = try options.makeSession(connectingTo: nil) { begin(session) }
    } catch {
      _ = state.close(error)
    }
  }

  /// Takes over a connected stream socket, which it closes from now on.
  ///
  /// No options of the system are set; use ``set(_:)``. It is closed on exec from now on.
  ///
  /// - Throws: ``SocketError/descriptor(_:_:)`` if the descriptor cannot be used so: `getpeername` with `EBADF`,
  ///   `ENOTCONN` or `ENOTSOCK`, `getsockopt` with `EPROTOTYPE` for a socket of messages, such as a datagram socket;
  ///   ``SocketError/tls(_:)`` if ``Options/serverName`` is not a valid name. The descriptor then stays the caller's.
  public init(takingOver descriptor: Int32, options: Options = Options(), handler: Handler? = nil) throws(SocketError) {
    let address: SocketAddress?
    do throws(SystemError) {
      address = try SystemCall.connectedPeer(of: descriptor)
    } catch {
      throw .descriptor(descriptor, error)
    }
    let session = try options.makeSession(connectingTo: address)
    do throws(SystemError) {
      try SystemCall.closeOnExec(descriptor)
    } catch {
      throw .descriptor(descriptor, error)
    }
    errorAddress = address?.unlessUnnamed
    receivesDescriptors = address?.family == .unix
    self.options = options
    state = SocketState(isConnecting: false)
    body = handler.map(Body.init)
    super.init(OwnedDescriptor(descriptor))
    if let session { begin(session) }
    state.taker = handlerTaker
  }

  // Before the number of the descriptor can be another's.
  deinit { place?.leave() }

  /// Who takes what is received when no task waits.
  var handlerTaker: SocketState.Taker {
    guard body != nil else { return .nobody }
    return options.delivery == .bytes ? .handler : .request
  }

  // What the base asks for.

  override var interest: RunLoop.DescriptorSource.Events? { state.interest(isQueueEmpty: !hasUnsent) }

  override var isOver: Bool { state.isOver }

  override var handlerCode: UInt64 { body.map { codeAddress(of: $0) } ?? 0 }

  override var details: String {
    "phase = \(state.phase), ended = \(state.hasEnded), writing = \(state.writing), queued = \(queue.count), "
      + "paused = \(state.isPaused)"
  }

  override func hasEntered() {
    if registrations.timer == nil { startTimer() }
    postFailure()
    if tls != nil {
      // A loop that has ended looks for nothing.
      hasPostedSession = false
      postSession()
    }
  }

  override func cannotWatch(_ error: RunLoopError) { close(.loop(error)) }

  override func serve(_ events: RunLoop.DescriptorSource.Events) -> Bool {
    respond(to: events)
    if state.hasOutputFailed {
      tellFailure()
      // A writer may have resumed reading: what is decrypted makes no descriptor ready.
      attendToSession()
    }
    return state.isOver
  }

  override func reportEnd() {
    guard case .closing(let error) = state.phase else { return lock.unlock() }
    let body = body
    end(error) {
      noteCall(of: body)
      body?.handler(self, .closed(error))
    }
  }

  override func finish(isInvalidated: Bool) -> Remains? {
    if isInvalidated { sayGoodbye() }
    let untaken = isInvalidated ? passed.takeAll() : []
    guard state.finish() else { return untaken.isEmpty ? nil : takeRemains { _ in withExtendedLifetime(untaken) {} } }
    place?.leave()
    let (reader, writer, held) = (reader.take(), writer.take(), (body, tls, place, untaken))
    body = nil
    tls = nil
    place = nil
    queue.removeAll()
    return takeRemains { error in
      reader?.resume(atEnd: error)
      writer?.resume(throwing: error ?? SocketError.closedForWriting)
      withExtendedLifetime(held) {}
    }
  }

  override var invalidationError: (any Error)? { SocketError.invalid }

  override func takeWaits() -> [(any Error) -> Void] {
    let waiting = [reader.takeFailing(), writer.takeFailing()].compactMap { $0 }
    state.taker = handlerTaker
    return waiting
  }

  override func waitError(_ rejection: WaitRejection) -> any Error { SocketError(rejection) }

  package override var keepAliveDetail: String {
    lock.ifOwned(else: "of the parent process") { "descriptor \(descriptor?.number ?? -1), a connection" }
  }
}

extension Socket: SocketKind {}

extension Socket {
  /// The closure that is called with the socket's events; while it is nil, nothing is received.
  ///
  /// Can be used from any thread. A handler that is replaced while it runs is not called again after it has returned.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set {
      lock.releasing {
        let old = body
        if state.phase != .closed {
          body = newValue.map(Body.init)
          if !reader.isTaken { state.taker = handlerTaker }
          updateInterest()
        }
        return old
      }
    }
  }

  /// Whether the connection is made and not over.
  ///
  /// Can be used from any thread.
  public var isConnected: Bool { lock.ifOwned(else: false) { state.phase == .open } }

  /// How many bytes wait to be sent.
  ///
  /// Can be used from any thread.
  public var queuedByteCount: Int { lock.ifOwned(else: 0) { queue.count } }

  /// The socket's own address.
  ///
  /// Can be called from any thread. Errors are those of `getsockname`, and ``SocketError/invalid``.
  public func localAddress() throws(SocketError) -> SocketAddress {
    try address { descriptor throws(SystemError) in try descriptor.ownAddress() }
  }

  /// The peer's address.
  ///
  /// Can be called from any thread. Errors are those of `getpeername`, `ENOTCONN` before the connection is made, and
  /// ``SocketError/invalid``.
  public func remoteAddress() throws(SocketError) -> SocketAddress {
    try address { descriptor throws(SystemError) in try descriptor.peerAddress() }
  }

  private func address(
    _ ask: (OwnedDescriptor) throws(SystemError) -> SocketAddress?
  ) throws(SocketError) -> SocketAddress {
    guard let descriptor = openDescriptor else { throw .invalid }
    do throws(SystemError) {
      guard let address = try ask(descriptor) else {
        throw SystemError(call: SystemCall.socketName.rawValue, number: EAFNOSUPPORT)
      }
      return address
    } catch {
      throw failure(error)
    }
  }

  /// An error of a system call, with the socket's address.
  func failure(_ error: SystemError) -> SocketError { .system(error, address: errorAddress) }
}
