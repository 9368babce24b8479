// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A socket of datagrams: of UDP, or within the machine.
///
/// It is an item of a run loop: it can be in any number of modes, whose loop calls its handler with each datagram.
/// Instead of a handler, a task may wait for ``datagrams``; the socket must be in a loop nevertheless. Sending works
/// from any thread. A loop holds the sockets that are in it; a socket in no loop that nobody holds is closed.
///
/// Datagrams that have arrived and were not received wait in the system, up to the size of
/// ``SocketOption/receiveBuffer(bytes:)``. Beyond that, datagrams are lost or, on a Unix socket, their sender waits. If
/// several arrive at a time, they are received together, at most sixteen. If the socket is paused, those that the
/// handler was not called with yet wait here; a run in a handler goes on with the next of them; closing the socket
/// drops them, as it drops those in the system.
///
/// The corresponding Core Foundation type is `CFSocket` with `kCFSocketDataCallBack`.
public final class DatagramSocket: BaseSocket, @unchecked Sendable {
  // Sendable: all that changes is guarded by the lock.

  /// An event that a handler is called with.
  ///
  /// An event is valid until the handler returns: the compiler rejects code that keeps it.
  public enum Event: ~Escapable, Sendable {
    /// A datagram has arrived. Its bytes are in a buffer of the loop, which is reused when the handler returns.
    case received(RawSpan, Datagram.Envelope)
    /// There may be room again, after a ``DatagramSocket/send(_:to:from:)-(UnsafeRawBufferPointer,_,_)`` that returned
    /// false.
    case writable
    /// The system has reported an error, such as that nobody receives at the other end (`ECONNREFUSED`), or that it has
    /// no memory for what has arrived. The socket goes on.
    case failed(DatagramError)
    /// The socket is closed because of an error; this is the last event.
    case closed(DatagramError)
  }

  /// A handler of events, called on the thread of a loop that the socket is in, never by two threads at a time.
  public typealias Handler = @Sendable (DatagramSocket, Event) -> Void

  /// How a socket behaves.
  public struct Options: Sendable {
    /// How many bytes of a datagram are received, from 1 to 1 MiB; a longer datagram arrives truncated, and reports
    /// that.
    ///
    /// The default is the most that UDP can carry.
    public var maximumDatagramSize = 65_507
    /// Whether the file of a Unix address is removed when the socket is closed; only a file that the socket has made is
    /// removed.
    public var removesFile = true
    /// Whether a Unix address may be taken whose file exists though no socket receives at it, as a killed program
    /// leaves it.
    ///
    /// Programs that set this exclude each other as with ``ListeningSocket/Options/replacesStaleFile``.
    public var replacesStaleFile = false
    /// Whether each datagram reports the address that it was sent to and the interface that it arrived at
    /// (`IP_PKTINFO`, `IPV6_RECVPKTINFO`), even if the socket is bound to one address.
    ///
    /// A socket that is bound to the address of all interfaces reports them always, as answers need them.
    public var reportsDestination = false
    /// Whether each datagram reports when the system received it (`SO_TIMESTAMPNS`).
    public var reportsTime = false
    /// How many descriptors of a datagram within this machine are delivered; others are closed and counted.
    public var maximumDescriptorCount = 0
    /// The mode of the file of a Unix address, such as 0o660; nil means 0o777 without the bits of the process's
    /// `umask`.
    public var fileMode: UInt16?
    /// How long to wait before trying again when the system had no memory for a datagram that has arrived.
    public var retryInterval: Duration = .milliseconds(100)
    /// Options of the system, set in this order before the socket is bound.
    ///
    /// Unless these say otherwise, a socket of IPv6 leaves IPv4 to others (`IPV6_V6ONLY`).
    public var socketOptions: [SocketOption] = []

    /// The usual behaviour.
    public init() {}
  }

  /// How the socket behaves.
  public let options: Options

  // Guarded by the lock, as in the base.

  @exclusivity(unchecked) var state = DatagramState()
  /// What is wanted beside the bytes of datagrams; nil for nothing.
  let extras: DatagramExtras?
  /// The address that it is connected to, for errors.
  let peer: SocketAddress?
  /// Whether a Unix socket has a peer, of whose queue the system reports that it has room.
  let reportsRoom: Bool
  @exclusivity(unchecked) var body: Body? { didSet { bodySerial &+= 1 } }
  /// How often the handler was replaced.
  @exclusivity(unchecked) private(set) var bodySerial = 0
  @exclusivity(unchecked) var reader = TaskWait<Datagram?>()
  @exclusivity(unchecked) var writer = RoomWaits()
  /// The sender of the last datagram, whose address is not made again for the next.
  @exclusivity(unchecked) var lastSender: SocketAddress?
  /// What a system call has received and the handler was not called with yet, while that service goes on.
  @exclusivity(unchecked) var burst = DatagramBurst()
  /// What was received before the socket was paused, or before a run began in a handler; at most a burst.
  @exclusivity(unchecked) var kept: [Datagram] = []

  /// A handler; in a structure of its own it is stored without a thunk.
  struct Body {
    let handler: Handler
  }

  /// Makes a socket.
  ///
  /// A connected socket receives from its peer alone, and is notified of errors. To get answers, a Unix socket has to
  /// be bound.
  ///
  /// - Parameters:
  ///   - address: Where it receives; port zero lets the system choose. If it is nil, the system chooses when the socket
  ///     connects or first sends, and a Unix socket has no address.
  ///   - peer: The address that it is connected to; nil for none.
  ///   - options: How the socket behaves.
  ///   - handler: Called when the socket is in a loop. It is released when the socket is closed or invalidated.
  /// - Throws: ``DatagramError/system(_:address:)`` with one of the two addresses: `socket`, `setsockopt`, `bind`
  ///   (`EADDRINUSE`, `EACCES`), `connect` (`ENOENT`, `ECONNREFUSED`, `ENETUNREACH`), with
  ///   ``Options/fileMode`` also `fchmod` and `chmod`, with ``Options/replacesStaleFile`` also `open` of the directory,
  ///   `flock`, and `unlink`; ``DatagramError/option(_:_:)``.
  /// - Precondition: One of the two addresses is given.
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
    body = handler.map(Body.init)
    state.hasHandler = body != nil
    super.init(descriptor, options.removesFile ? made : nil)
  }

  /// Takes over a socket of datagrams, such as one of ``SocketActivation``, which it closes from now on.
  ///
  /// Of the options, those that concern binding are not applied. The file of a Unix address is not removed.
  ///
  /// - Throws: ``DatagramError/descriptor(_:_:)``: `getsockopt` with `EBADF` or `ENOTSOCK`, with `EPROTOTYPE` for
  ///   another type of socket; `getsockname`, `fcntl`; ``DatagramError/option(_:_:)``. The descriptor stays the
  ///   caller's then.
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
    body = handler.map(Body.init)
    state.hasHandler = body != nil
    super.init(OwnedDescriptor(descriptor))
  }

  // What the base asks for.

  override var interest: RunLoop.DescriptorSource.Events? { state.interest }

  override var isOver: Bool { state.isOver }

  override var handlerCode: UInt64 { body.map { codeAddress(of: $0) } ?? 0 }

  override var details: String {
    "phase = \(state.phase), paused = \(state.isPaused), exhausted = \(state.isExhausted)"
  }

  override func hasEntered() { if state.room == .byTime, registrations.secondTimer == nil { startRetrying() } }

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
    guard state.finish() else { return nil }
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
  /// The closure that is called with the socket's events; while it is nil, nothing is received.
  ///
  /// Can be used from any thread. A handler that is replaced while it runs is not called again after it has returned.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set {
      lock.releasing {
        let old = body
        if !state.isOver {
          body = newValue.map(Body.init)
          state.hasHandler = body != nil
          updateInterest()
        }
        return old
      }
    }
  }

  /// The socket's own address, with the port that the system has chosen.
  ///
  /// Can be called from any thread. Errors are those of `getsockname`, and ``DatagramError/invalid``.
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

  /// Sets an option of the system.
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
