// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A stream connection over TCP or a Unix socket.
///
/// A socket is a run loop item and can be added to any number of modes. The loop calls the handler when the
/// connection is established, when bytes have arrived, when there is room to write, and when the connection has
/// ended. Writing, shutting down and closing can be done from any thread. A loop retains the sockets that were
/// added to it. A socket that is in no loop is closed when its last reference is released.
///
/// Instead of setting a handler, tasks can use ``receive(atMost:)`` and ``send(_:)-([UInt8])``. The socket must
/// still be added to a loop.
///
/// The corresponding Core Foundation type is `CFSocket`.
public final class Socket: BaseSocket, @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  /// An event that a handler is called with.
  ///
  /// ``closed(_:)`` is the last event. It is reported exactly once, unless the socket is invalidated first. An
  /// event is valid until the handler returns; the compiler rejects code that stores it.
  public enum Event: ~Escapable, Sendable {
    /// The connection is established and, if TLS is used, secured. With TLS, this event is also reported for a
    /// socket that was accepted or that was secured later.
    case connected
    /// Bytes have arrived. They are in a buffer of the loop that is reused when the handler returns, so copy the
    /// bytes that you keep, for example with `bytes.withUnsafeBytes { Array($0) }`.
    case received(RawSpan)
    /// There are bytes to read, or the end of the stream; reported once until ``Socket/read(into:)`` is called.
    case readable
    /// There is room to write again, after a write that returned false or threw an error.
    case writable
    /// The peer has stopped writing. This event is reported once, and the other direction stays open.
    case ended
    /// The socket is closed, because both directions have ended or an error has occurred.
    case closed(SocketError?)
  }

  /// A handler of events, called on the thread of a loop that the socket is in, and never on two threads at a time.
  public typealias Handler = @Sendable (Socket, Event) -> Void

  /// The configuration of a socket.
  public struct Options: Sendable {
    /// How received bytes are delivered to the handler.
    public enum Delivery: Hashable, Sendable {
      /// Each ``Socket/Event/received(_:)`` carries the bytes of one receive.
      case bytes
      /// ``Socket/Event/readable`` reports that there are bytes, and the handler reads as many as it wants.
      case readiness
    }

    /// How received bytes are delivered to the handler; defaults to ``Delivery/bytes``.
    public var delivery = Delivery.bytes
    /// The time limit for connecting, counted from when the socket is first added to a loop; defaults to `nil`, which
    /// leaves the limit to the system.
    public var connectTimeout: Duration?
    /// The time after which the socket is closed if nothing is received or sent; defaults to `nil`, which sets no
    /// limit.
    public var idleTimeout: Duration?
    /// The time after which the socket is closed if nothing arrives while it is receiving: reading is not paused,
    /// and there is a handler or a waiting task.
    ///
    /// The socket is then closed with ``SocketError/idle(_:after:address:)`` for the side `read`. Defaults to
    /// `nil`, which sets no limit.
    public var readTimeout: Duration?
    /// The time that queued bytes may wait while the system accepts none of them because the peer does not read.
    ///
    /// After that time nothing more can be written, and the socket is closed with
    /// ``SocketError/idle(_:after:address:)`` for the side `write`: at once, or after the bytes that have arrived
    /// were received. If the peer keeps sending, the socket is closed when the same time has passed again. Defaults
    /// to `nil`, which sets no limit.
    public var writeTimeout: Duration?
    /// The number of queued bytes at which writers are asked to wait and further writes are rejected; the default is
    /// 256 KiB.
    public var highWater = 256 * 1024
    /// The number of queued bytes at or below which writers are notified that there is room; the default is 64 KiB.
    public var lowWater = 64 * 1024
    /// The maximum number of descriptors passed by a peer on this machine that are kept for
    /// ``Socket/takeDescriptors()``.
    ///
    /// Further descriptors are closed and counted by ``Socket/droppedDescriptorCount``. If a peer passes hundreds
    /// of them and closing them takes long, the socket is closed with ``SocketError/system(_:address:)`` and
    /// `ETOOMANYREFS`. The default is 0.
    public var maximumDescriptorCount = 0
    /// The system's socket options, set in this order before the socket connects or after it was accepted; defaults to
    /// none.
    ///
    /// TCP sends small amounts of data at once unless this array contains ``SocketOption/noDelay(_:)`` with false.
    public var socketOptions: [SocketOption] = []
    /// The TLS context that secures the connection once it is established or accepted; defaults to `nil`, which means
    /// no TLS.
    public var tls: TLSContext?
    /// The name that a client requires in the server's certificate; defaults to `nil`, which requires a certificate for
    /// the server's address.
    public var serverName: String?

    /// Creates the default options.
    public init() {}
  }

  /// The options that the socket was created with.
  public let options: Options

  /// The address reported in errors: the peer's or, if the peer has none, the one at which the connection was accepted.
  let errorAddress: SocketAddress?

  // Guarded by the lock, as in the base.

  @exclusivity(unchecked) var state: SocketState
  @exclusivity(unchecked) var queue = ByteQueue()
  @exclusivity(unchecked) var body: Body?
  /// Whether the peer can pass descriptors, which requires a Unix socket.
  let receivesDescriptors: Bool
  @exclusivity(unchecked) var passed = PassedDescriptors()
  /// The number of dropped descriptors not yet closed; created when the first one is dropped.
  var closingCount: ClosingCount?
  /// The address to connect to as soon as the listening socket's queue has room.
  var awaitedAddress: SocketAddress?
  /// When the phase that is being timed began, such as connecting or the handshake.
  @exclusivity(unchecked) var lastActivity: Tick?
  @exclusivity(unchecked) var idle = IdleTimes()
  @exclusivity(unchecked) var reader = TaskWait<[UInt8]?>()
  var readerLimit = 0
  @exclusivity(unchecked) var writer = RoomWaits()
  /// Whether to shut the reading side down as soon as the connection is established.
  var endsReading = false
  /// The TLS session, if the connection is or will be secured.
  @exclusivity(unchecked) var tls: TLSSession?
  /// Whether a block that checks the TLS session has been posted to a loop.
  @exclusivity(unchecked) var hasPostedSession = false
  /// The socket's place among the connections of the listening socket that accepted it.
  var place: ConnectionPlace?

  /// A handler; wrapping it in a structure avoids a reabstraction thunk.
  struct Body {
    let handler: Handler

    /// Does not use `map`, which would wrap the closure in a thunk that hides the user's function.
    init?(_ handler: Handler?) {
      guard let handler else { return nil }
      self.handler = handler
    }
  }

  /// Starts connecting to an address.
  ///
  /// If the queue of a listening Unix socket is full, the system fails the attempt instead of waiting. The socket
  /// then tries again every 10 milliseconds while it is in a loop, until ``Options/connectTimeout`` has passed.
  ///
  /// - Parameters:
  ///   - address: The address to connect to.
  ///   - options: The configuration of the socket.
  ///   - handler: Called once the socket is in a loop. It is released when the socket is closed or invalidated.
  /// - Throws: ``SocketError/system(_:address:)`` if the system reports an error at once: the process has no
  ///   descriptor left (`EMFILE`), there is no route to the address (`ENETUNREACH`), or there is no listener at a
  ///   Unix address (`ENOENT`, `ECONNREFUSED`); ``SocketError/option(_:_:)``; ``SocketError/tls(_:)`` if
  ///   ``Options/serverName`` is not a valid name. Later errors are reported by an event.
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
    body = Body(handler)
    super.init(descriptor)
    state.taker = handlerTaker
  }

  /// Creates a socket for an accepted connection, which is over if `error` is set, so that only the end is reported.
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

  /// Takes over a connected stream socket, which the new object then owns and closes.
  ///
  /// The descriptor is marked close-on-exec. No system options are set; use ``set(_:)``.
  ///
  /// - Throws: ``SocketError/descriptor(_:_:)`` if the descriptor cannot be used: `getpeername` with `EBADF`,
  ///   `ENOTCONN` or `ENOTSOCK`, or `getsockopt` with `EPROTOTYPE` for a message-oriented socket, such as a
  ///   datagram socket; ``SocketError/tls(_:)`` if ``Options/serverName`` is not a valid name. The caller then
  ///   still owns the descriptor.
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
    body = Body(handler)
    super.init(OwnedDescriptor(descriptor))
    if let session { begin(session) }
    state.taker = handlerTaker
  }

  // Leave before the descriptor is closed, because its number can be reused afterwards.
  deinit { place?.leave() }

  /// The recipient of received bytes when no task is waiting.
  var handlerTaker: SocketState.Taker {
    guard body != nil else { return .nobody }
    return options.delivery == .bytes ? .handler : .request
  }

  // MARK: - Overrides of the base class

  override var interest: RunLoop.DescriptorSource.Events? { state.interest(isQueueEmpty: !hasUnsent) }

  override var isOver: Bool { state.isOver }

  override var handlerCode: UInt64 { body.map { ClosureCode.first(of: $0) } ?? 0 }

  override var details: String {
    "phase = \(state.phase), ended = \(state.hasEnded), writing = \(state.writing), queued = \(queue.count), "
      + "paused = \(state.isPaused)"
  }

  override func hasEntered() {
    if registrations.timer == nil { startTimer() }
    postFailure()
    if tls != nil {
      // A block posted to a loop that has ended is never run, so post again.
      hasPostedSession = false
      postSession()
    }
  }

  override func cannotWatch(_ error: RunLoopError) { close(.loop(error)) }

  override func serve(_ events: RunLoop.DescriptorSource.Events) -> Bool {
    respond(to: events)
    if state.hasOutputFailed, !isAway {
      tellFailure()
      // A writer may have resumed reading, and decrypted bytes do not make the descriptor ready.
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
    guard state.finish(isInvalidated: isInvalidated) else {
      return untaken.isEmpty ? nil : takeRemains { _ in withExtendedLifetime(untaken) {} }
    }
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
  /// The closure that is called with the socket's events.
  ///
  /// While it is `nil`, nothing is received unless a task is waiting. Can be used from any thread. If a handler is
  /// replaced while it runs, it is not called again after it returns.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set {
      lock.releasing {
        let old = body
        if state.phase != .closed {
          body = Body(newValue)
          if !reader.isTaken { state.taker = handlerTaker }
          updateInterest()
        }
        return old
      }
    }
  }

  /// Whether the connection is established and has not ended.
  ///
  /// Can be used from any thread.
  public var isConnected: Bool { lock.ifOwned(else: false) { state.phase == .open } }

  /// The number of bytes waiting to be sent.
  ///
  /// Can be used from any thread.
  public var queuedByteCount: Int { lock.ifOwned(else: 0) { queue.count } }

  /// Returns the socket's own address.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: The errors of `getsockname`, and ``SocketError/invalid``.
  public func localAddress() throws(SocketError) -> SocketAddress {
    try address { descriptor throws(SystemError) in try descriptor.ownAddress() }
  }

  /// Returns the peer's address.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: The errors of `getpeername`, such as `ENOTCONN` before the connection is established, and
  ///   ``SocketError/invalid``.
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

  /// Wraps an error of a system call together with the socket's address.
  func failure(_ error: SystemError) -> SocketError { .system(error, address: errorAddress) }
}
