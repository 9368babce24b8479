// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A socket that accepts connections.
///
/// It is an item of a run loop: it can be in any number of modes, whose loop accepts connections and calls its handler.
/// Instead of a handler, a task may wait for ``connections``; the socket must be in a loop nevertheless. A socket in no
/// loop that nobody holds is closed.
///
/// The corresponding Core Foundation type is `CFSocket` with `kCFSocketAcceptCallBack`.
public final class ListeningSocket: BaseSocket, @unchecked Sendable {
  // Sendable: all that changes is guarded by the lock.

  /// An event that a handler is called with.
  public enum Event: Sendable {
    /// A connection has arrived; it is in no loop yet, and is closed if nobody keeps it.
    case accepted(Socket)
    /// The system has no descriptor or memory left for a waiting connection (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`).
    /// Accepting is paused, and tried again after ``Options/retryInterval`` or by
    /// ``ListeningSocket/resumeAccepting()``.
    case exhausted(SystemError)
    /// The socket is closed because of an error; this is the last event.
    case closed(SocketError)
  }

  /// A handler of events, called on the thread of a loop that the socket is in.
  public typealias Handler = @Sendable (ListeningSocket, Event) -> Void

  /// How a socket listens.
  public struct Options: Sendable {
    /// How many connections the system keeps waiting, at most as many as its settings allow.
    public var backlog = 1024
    /// Whether the file of a Unix address is removed when the socket is closed.
    ///
    /// Only a file that the socket has made is removed: a file that another program has put in its place stays.
    public var removesFile = true
    /// Whether a Unix address may be taken whose file exists though nobody listens at it, as a killed program leaves
    /// it.
    ///
    /// To find out whether a program listens, the socket connects, which a listening program sees as a connection that
    /// ends at once. Programs that set this exclude each other by a lock (`flock`), for which they wait a tenth of a
    /// second at most: on the file's directory, which they must be allowed to read, if it is their user's alone.
    /// Otherwise, as everyone who can read a directory can hold its lock, on a file in the directory of the user's
    /// message ports, and on the file's directory only if that succeeds in the same time. A socket that another program
    /// has bound but does not listen with yet is mistaken for an abandoned one.
    public var replacesStaleFile = false
    /// How long to wait before trying again when the system lacks resources for a connection.
    public var retryInterval: Duration = .milliseconds(100)
    /// The mode of the file of a Unix address, such as 0o660; nil means 0o777 without the bits of the process's
    /// `umask`.
    ///
    /// The file never has more permissions than these, not even before the socket listens.
    public var fileMode: UInt16?
    /// Options of the system, set in this order before the socket is bound.
    ///
    /// Unless these say otherwise, a port may be taken while old connections of it are still remembered
    /// (`SO_REUSEADDR`), and a socket of IPv6 leaves IPv4 to others (`IPV6_V6ONLY`).
    public var socketOptions: [SocketOption] = []
    /// How many accepted connections there may be at a time; nil means any number.
    ///
    /// At the limit accepting stops, and new connections wait in the system until a connection is closed.
    public var maximumConnectionCount: Int?
    /// How long after it was accepted a connection is closed with ``SocketError/deadlinePassed(after:address:)``,
    /// unless ``Socket/setDeadline(after:)`` was called meanwhile; nil means never.
    ///
    /// A peer that sends its request a byte at a time never reaches ``Socket/Options/idleTimeout``, but reaches this
    /// deadline.
    public var requestDeadline: Duration?
    /// How accepted sockets behave.
    ///
    /// A connection whose options cannot be set is accepted, and then closed with ``SocketError/option(_:_:)``.
    public var accepted = Socket.Options()

    /// The usual behaviour.
    public init() {}
  }

  /// How the socket listens.
  public let options: Options
  /// Where the socket listens, with the port that the system has chosen.
  public let address: SocketAddress

  // Guarded by the lock.

  var body: Body?
  var acceptor = TaskWait<Socket?>()
  var isPaused = false
  /// How many connections that were accepted are there.
  var connectionCount = 0
  /// The places of those whose descriptors are open, by those.
  var openPlaces: [Int32: ObjectIdentifier] = [:]
  /// Whether a drain has ended the input of the connections.
  let inputEnd = ConnectionPlace.InputEnd()
  /// Who waits for the last of them to end.
  var drains: [CheckedContinuation<Void, Never>] = []

  struct Body {
    let handler: Handler
  }

  /// How many connections are accepted before the loop looks at something else.
  static let batch = 16

  /// Begins to listen.
  ///
  /// The file of a Unix path is made in the file system, and removed when the socket is closed if
  /// ``Options/removesFile`` is set.
  ///
  /// - Parameters:
  ///   - address: Where to listen; port zero lets the system choose.
  ///   - options: How to listen.
  ///   - handler: Called when the socket is in a loop. It is released when the socket is invalidated.
  /// - Throws: ``SocketError/system(_:address:)``: `socket`, `setsockopt`, `bind` (`EADDRINUSE`, `EACCES`,
  ///   `EADDRNOTAVAIL`), `listen` or `getsockname`; with ``Options/fileMode`` also `fchmod` and `chmod`; with
  ///   ``Options/replacesStaleFile`` also `open` of the directory, `flock`, and `unlink`.
  ///   ``SocketError/option(_:_:)``.
  public init(at address: SocketAddress, options: Options = Options(), handler: Handler? = nil) throws(SocketError) {
    let descriptor: OwnedDescriptor
    do throws(SystemError) {
      descriptor = try OwnedDescriptor.makeStream(address)
      try descriptor.prepareToListen(address.family)
    } catch {
      throw .system(error, address: address)
    }
    try descriptor.set(options.socketOptions)
    var made: SocketFile?
    do throws(SystemError) {
      do throws(SystemError) {
        if options.replacesStaleFile, let path = address.pathText {
          try SocketFile.replacing(address, path) { () throws(SystemError) in
            try descriptor.begin(at: address, options, &made)
          }
        } else {
          try descriptor.begin(at: address, options, &made)
        }
        self.address = try descriptor.ownAddress() ?? address
      } catch {
        made?.remove()
        throw error
      }
    } catch {
      throw .system(error, address: address)
    }
    self.options = options
    body = handler.map(Body.init)
    super.init(descriptor, options.removesFile ? made : nil)
  }

  /// Listens with a descriptor that listens already.
  init(
    listening descriptor: OwnedDescriptor, at address: SocketAddress, file: SocketFile?, options: Options,
    handler: Handler?
  ) {
    self.address = address
    self.options = options
    body = handler.map(Body.init)
    super.init(descriptor, file)
  }

  // What the base asks for.

  override var interest: RunLoop.DescriptorSource.Events? { accepts ? .readable : nil }

  override var handlerCode: UInt64 { body.map { codeAddress(of: $0) } ?? 0 }

  override var details: String {
    "address = \(address), paused = \(isPaused), exhausted = \(registrations.timer != nil), "
      + "connections = \(connectionCount)"
  }

  override func cannotWatch(_ error: RunLoopError) {
    if case .cannotWatch(_, let error) = error { postpone(error) }
  }

  override func ready(_ events: RunLoop.DescriptorSource.Events) { acceptSome() }

  override func finish(isInvalidated: Bool) -> Remains? {
    guard descriptor != nil else { return nil }
    let (acceptor, body) = (acceptor.take(), body)
    self.body = nil
    return takeRemains { error in
      acceptor?.resume(atEnd: error)
      withExtendedLifetime(body) {}
    }
  }

  override func takeWaits() -> [(any Error) -> Void] { [acceptor.takeFailing()].compactMap { $0 } }

  override func waitError(_ rejection: WaitRejection) -> any Error { SocketError(rejection) }

  package override var keepAliveKind: KeepAliveKind { .listener }

  package override var keepAliveDetail: String { "listens at \(address)" }
}

extension ListeningSocket: SocketKind {}

extension ListeningSocket {
  /// The closure that is called with the socket's events; while it is nil, nothing is accepted.
  ///
  /// Can be used from any thread.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set {
      lock.releasing {
        let old = body
        if descriptor != nil { body = newValue.map(Body.init) }
        updateInterest()
        return old
      }
    }
  }

  /// Stops accepting; new connections wait in the system.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func pauseAccepting() {
    lock.ifOwned {
      isPaused = true
      updateInterest()
    }
  }

  /// Accepts again, even before the time when the system lacked resources.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func resumeAccepting() {
    guard lock.lockUnlessParents() else { return }
    isPaused = false
    let timer = registrations.replaceTimer(nil)
    updateInterest()
    lock.unlock()
    timer?.invalidate()
  }
}

extension OwnedDescriptor {
  /// Binds a socket and begins to listen, and notes the file that this has made.
  fileprivate func begin(
    at address: SocketAddress, _ options: ListeningSocket.Options, _ file: inout SocketFile?
  ) throws(SystemError) {
    try bind(address, fileMode: options.fileMode, &file)
    try listen(options.backlog)
  }

  /// Binds a socket and notes the file that this has made, which never has more permissions than its mode.
  func bind(_ address: SocketAddress, fileMode: UInt16?, _ file: inout SocketFile?) throws(SystemError) {
    let mode = address.pathBytes == nil ? nil : fileMode
    if let mode { _ = try SystemCall.descriptorMode.make { fchmod(number, mode_t(mode)) < 0 ? -errno : 0 } }
    try bind(address)
    file = SocketFile(address)
    // What the process's mask has taken away.
    if let mode { try file?.setMode(mode) }
  }

  func prepareToListen(_ family: SocketAddress.Family) throws(SystemError) {
    guard family != .unix else { return }
    _ = try SystemCall.socketOption.make { crl_socket_reuse_address(number, 1) }
    if family == .ipv6 { try setIPv6Only() }
  }
}
