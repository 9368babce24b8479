// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A UDP socket, or a Unix socket for datagrams.
///
/// A datagram socket is a run loop item and can be added to any number of modes. The loop calls the handler with
/// each datagram. Instead of setting a handler, a task can iterate over ``datagrams``. The socket must still be added
/// to a loop. Sending is possible from any thread. A loop retains the sockets that were added to it. A socket that is
/// in no loop is closed when its last reference is released.
///
/// Datagrams that were not received yet wait in the system, up to the size of ``SocketOption/receiveBuffer(bytes:)``.
/// Beyond that, datagrams are lost or, on a Unix socket, their sender waits. Up to sixteen datagrams that have arrived
/// together are received at once. If the socket is paused, those that were not delivered yet are kept. A nested run in
/// a handler continues with the next of them. Closing the socket drops them, as it drops those in the system.
///
/// The corresponding Core Foundation type is `CFSocket` with `kCFSocketDataCallBack`.
public final class DatagramSocket: BaseSocket, @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  /// An event that a handler is called with.
  ///
  /// An event is valid until the handler returns; the compiler rejects code that stores it.
  public enum Event: ~Escapable, Sendable {
    /// A datagram has arrived. Its bytes are in a buffer of the loop that is reused when the handler returns.
    case received(RawSpan, Datagram.Envelope)
    /// There may be room again, after a ``DatagramSocket/send(_:to:from:)-(UnsafeRawBufferPointer,_,_)`` that returned
    /// false.
    case writable
    /// The system has reported an error, for example that there is no receiver at the other end (`ECONNREFUSED`) or
    /// that it has no memory for a datagram that arrived. The socket stays open.
    case failed(DatagramError)
    /// The socket is closed because of an error; this is the last event.
    case closed(DatagramError)
  }

  /// A handler of events, called on the thread of a loop that the socket is in, and never on two threads at a time.
  public typealias Handler = @Sendable (DatagramSocket, Event) -> Void

  /// The configuration of a datagram socket.
  public struct Options: Sendable {
    /// The number of bytes to receive of a datagram, from 1 to 1 MiB.
    ///
    /// A longer datagram is truncated, and its envelope reports that. The default, 65,507 bytes, is the maximum for UDP
    /// over IPv4.
    public var maximumDatagramSize = 65_507
    /// Whether the file of a Unix address is removed when the socket is closed, provided that the socket created it;
    /// the default is true.
    public var removesFile = true
    /// Whether to replace the file of a Unix address that has no receiver, such as one left behind by a killed program;
    /// the default is false.
    ///
    /// Programs that set this option exclude each other as with ``ListeningSocket/Options/replacesStaleFile``.
    public var replacesStaleFile = false
    /// Whether datagrams report their destination address and interface even if the socket is bound to a single address
    /// (`IP_PKTINFO`, `IPV6_RECVPKTINFO`); the default is false.
    ///
    /// A socket that is bound to the wildcard address always reports them, because they are needed for replies.
    public var reportsDestination = false
    /// Whether datagrams report when the system received them (`SO_TIMESTAMPNS`); the default is false.
    public var reportsTime = false
    /// The maximum number of descriptors delivered with a datagram on a Unix socket, 0 by default; others are closed
    /// and counted.
    public var maximumDescriptorCount = 0
    /// The mode of the file of a Unix address, such as 0o660; defaults to `nil`, which means 0o777 without the bits in
    /// the process's `umask`.
    public var fileMode: UInt16?
    /// The time to wait before receiving again when the system lacked memory for a datagram; the default is 100
    /// milliseconds.
    public var retryInterval: Duration = .milliseconds(100)
    /// The system's socket options, set in this order before the socket is bound; defaults to none.
    ///
    /// IPv6 sockets have `IPV6_V6ONLY` set unless these options override it, so that other sockets can use the port
    /// with IPv4.
    public var socketOptions: [SocketOption] = []

    /// Creates the default options.
    public init() {}
  }

  /// The options that the socket was created with.
  public let options: Options

  // Guarded by the lock, as in the base class.

  @exclusivity(unchecked) var state = DatagramState()
  /// The ancillary data of datagrams, or `nil` if none is reported.
  let extras: DatagramExtras?
  /// The address that the socket is connected to, for errors.
  let peer: SocketAddress?
  /// Whether the system reports when there is room: it does not for an unconnected Unix socket.
  let reportsRoom: Bool
  @exclusivity(unchecked) var body: Body? { didSet { bodySerial &+= 1 } }
  /// The number of times the handler was replaced.
  @exclusivity(unchecked) private(set) var bodySerial = 0
  @exclusivity(unchecked) var reader = TaskWait<Datagram?>()
  @exclusivity(unchecked) var writer = RoomWaits()
  /// The sender of the last datagram, reused if the next has the same.
  @exclusivity(unchecked) var lastSender: SocketAddress?
  /// The datagrams of the current service that were received by one system call but not delivered yet.
  @exclusivity(unchecked) var burst = DatagramBurst()
  /// Datagrams received before the socket was paused or before a nested run began in a handler; at most a burst.
  @exclusivity(unchecked) var kept: [Datagram] = []

  /// A handler; wrapping it in a structure avoids a reabstraction thunk.
  struct Body {
    let handler: Handler

    /// Does not use `map`, which would wrap the closure in a thunk that hides the user's function.
    init?(_ handler: Handler?) {
      guard let handler else { return nil }
      self.handler = handler
    }
  }

  /// Creates a datagram socket.
  ///
  /// A connected socket receives only from its peer and is notified of errors. A Unix socket has to be bound to
  /// receive replies.
  ///
  /// - Parameters:
  ///   - address: The address to receive at; port zero lets the system choose a port. If it is `nil`, the system
  ///     chooses an address when the socket connects or first sends; a Unix socket then has no address.
  ///   - peer: The address to connect to. Defaults to `nil`, which leaves the socket unconnected.
  ///   - options: The configuration of the socket.
  ///   - handler: Called once the socket is in a loop. It is released when the socket is closed or invalidated.
  /// - Throws: ``DatagramError/system(_:address:)`` with one of the two addresses and the error of `socket`,
  ///   `setsockopt`, `bind` (`EADDRINUSE`, `EACCES`) or `connect` (`ENOENT`, `ECONNREFUSED`, `ENETUNREACH`); with
  ///   ``Options/fileMode`` also of `fchmod` and `chmod`; with ``Options/replacesStaleFile`` also of `open` for the
  ///   directory, `flock` and `unlink`. ``DatagramError/option(_:_:)``.
  /// - Precondition: At least one of the two addresses is not `nil`.
  public init(
    boundTo address: SocketAddress?, connectedTo peer: SocketAddress? = nil, options: Options = Options(),
    handler: Handler? = nil
  ) throws(DatagramError) {
    guard let first = address ?? peer else {
      fatalError("a datagram socket needs an address to be bound or connected to")
    }
    var made: SocketFile?
    let descriptor: OwnedDescriptor
    do throws(DatagramError) {
      descriptor = try OwnedDescriptor.makeDatagram(first, address, peer, options, &made)
      do throws(SystemError) {
        extras = try .prepare(descriptor.number, address, first.family, options)
      } catch {
        throw .system(error, address: first)
      }
    } catch {
      made?.remove()
      throw error
    }
    self.peer = peer
    reportsRoom = first.family != .unix || peer != nil
    self.options = options
    body = Body(handler)
    state.hasHandler = body != nil
    super.init(descriptor, options.removesFile ? made : nil)
  }

  /// Takes over a datagram socket, such as one from ``SocketActivation``, which the new object then owns and closes.
  ///
  /// The options for binding are not applied. The file of a Unix address is not removed.
  ///
  /// - Throws: ``DatagramError/descriptor(_:_:)`` for `getsockopt` with `EBADF` or `ENOTSOCK`, or with `EPROTOTYPE`
  ///   for another type of socket, and for `getsockname` and `fcntl`; ``DatagramError/option(_:_:)``. The caller then
  ///   still owns the descriptor.
  public init(
    takingOver descriptor: Int32, options: Options = Options(), handler: Handler? = nil
  ) throws(DatagramError) {
    let address: SocketAddress?
    do throws(SystemError) {
      let type = try SystemCall.socketOptionRead.make { crl_socket_type(descriptor) }
      guard type == crl_socket_type_datagram else {
        throw SystemError(call: SystemCall.socketOptionRead.rawValue, number: EPROTOTYPE)
      }
      address = try SocketAddress.ask(.socketName) { crl_socket_name(descriptor, $0, $1) }
      guard address != nil else { throw SystemError(call: SystemCall.socketName.rawValue, number: EAFNOSUPPORT) }
      _ = try SystemCall.descriptorFlags.make { crl_descriptor_set_flags(descriptor) }
      extras = try .prepare(descriptor, address, address?.family ?? .unix, options)
    } catch {
      throw .descriptor(descriptor, error)
    }
    for option in options.socketOptions { try option.applyToDatagrams(of: descriptor) }
    var name: [UInt8] = [0, 0]
    let hasPeer = crl_socket_peer(descriptor, &name, UInt32(name.count)) >= 0
    peer = hasPeer ? (try? SocketAddress.peer(of: descriptor)) ?? nil : nil
    reportsRoom = address?.family != .unix || hasPeer
    self.options = options
    body = Body(handler)
    state.hasHandler = body != nil
    super.init(OwnedDescriptor(descriptor))
  }

  // MARK: - Overrides of the base class

  override var interest: RunLoop.DescriptorSource.Events? { state.interest }

  override var isOver: Bool { state.isOver }

  override var handlerCode: UInt64 { body.map { ClosureCode.first(of: $0) } ?? 0 }

  override var details: String {
    "phase = \(state.phase), paused = \(state.isPaused), exhausted = \(state.isExhausted)"
  }

  override func hasEntered() {
    if state.room == .byTime, registrations.secondTimer == nil { startRetrying() }
    offerKept()
  }

  override func cannotWatch(_ error: RunLoopError) { close(.loop(error)) }

  override func serve(_ events: RunLoop.DescriptorSource.Events) -> Bool {
    if state.isOpen, !events.isEmpty || !kept.isEmpty { respond(to: events) }
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
    guard state.finish(isInvalidated: isInvalidated) else { return nil }
    burst = DatagramBurst()
    kept = []
    let (reader, writer, body) = (reader.take(), writer.take(), body)
    self.body = nil
    return takeRemains { error in
      reader?.resume(atEnd: error)
      writer?.resume(throwing: error ?? DatagramError.invalid)
      withExtendedLifetime(body) {}
    }
  }

  override func takeWaits() -> [(any Error) -> Void] {
    state.hasWaiter = false
    return [reader.takeFailing(), writer.takeFailing()].compactMap { $0 }
  }

  override func waitError(_ rejection: WaitRejection) -> any Error {
    switch rejection {
    case .busy: DatagramError.busy
    case .noLoop: DatagramError.loop(.itemIsInNoLoop)
    case .loopsHaveEnded: DatagramError.loop(.loopHasEnded)
    }
  }

  package override var keepAliveDetail: String {
    lock.ifOwned(else: "of the parent process") { "descriptor \(descriptor?.number ?? -1), datagrams" }
  }
}

extension DatagramSocket: SocketKind {}

extension DatagramSocket {
  /// The closure that is called with the socket's events.
  ///
  /// While it is `nil`, nothing is received unless a task is waiting. Can be used from any thread. If a handler is
  /// replaced while it runs, it is not called again after it returns.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set {
      lock.releasing {
        let old = body
        if !state.isOver {
          body = Body(newValue)
          state.hasHandler = body != nil
          updateInterest()
        }
        return old
      }
    }
  }

  /// Returns the socket's own address, with the port that the system has chosen.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: The errors of `getsockname`, and ``DatagramError/invalid``.
  public func localAddress() throws(DatagramError) -> SocketAddress {
    guard let descriptor = openDescriptor else { throw .invalid }
    do throws(SystemError) {
      guard let address = try descriptor.ownAddress() else {
        throw SystemError(call: SystemCall.socketName.rawValue, number: EAFNOSUPPORT)
      }
      return address
    } catch {
      throw .system(error, address: peer)
    }
  }

  /// Sets a socket option of the system.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: ``DatagramError/option(_:_:)``, or ``DatagramError/invalid``.
  public func set(_ option: SocketOption) throws(DatagramError) {
    guard let descriptor = openDescriptor else { throw .invalid }
    defer { withExtendedLifetime(descriptor) {} }
    try option.applyToDatagrams(of: descriptor.number)
  }
}
