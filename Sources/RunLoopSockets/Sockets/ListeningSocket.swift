// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A socket that accepts connections.
///
/// A listening socket is a run loop item and can be added to any number of modes. The loop accepts connections
/// and calls the handler. Instead of setting a handler, a task can iterate over ``connections``. The socket must
/// still be added to a loop. A socket that is in no loop is closed when its last reference is released.
///
/// The corresponding Core Foundation type is `CFSocket` with `kCFSocketAcceptCallBack`.
public final class ListeningSocket: BaseSocket, @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  /// An event that a handler is called with.
  public enum Event: Sendable {
    /// A connection was accepted. It is in no loop yet, and is closed unless the handler keeps a reference to it.
    case accepted(Socket)
    /// The system lacks a descriptor or memory for a waiting connection (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`).
    /// Accepting is paused and resumes after ``Options/retryInterval`` or when
    /// ``ListeningSocket/resumeAccepting()`` is called.
    case exhausted(SystemError)
    /// The socket is closed because of an error; this is the last event.
    case closed(SocketError)
  }

  /// A handler of events, called on the thread of a loop that the socket is in.
  public typealias Handler = @Sendable (ListeningSocket, Event) -> Void

  /// The configuration of a listening socket.
  public struct Options: Sendable {
    /// The maximum number of waiting connections that the system queues, subject to its own limit; the default is 1024.
    public var backlog = 1024
    /// Whether the file of a Unix address is removed when the socket is closed; the default is true.
    ///
    /// Only the file that the socket created is removed. If another program has replaced it, the replacement stays.
    public var removesFile = true
    /// Whether to replace the file of a Unix address that has no listener, such as one left behind by a killed program.
    ///
    /// The default is false. To find out whether there is a listener, the socket connects to the address. A program
    /// that listens there accepts a connection that ends at once. Programs that set this option exclude each other with
    /// a lock (`flock`), for which they wait at most a tenth of a second. If the file's directory is accessible only to
    /// the current user, the lock is on that directory, which has to be readable. Otherwise, because any user who can
    /// read a directory can lock it, the lock is on a file in the directory of the user's message ports; the file's
    /// directory is then locked too if that succeeds within the same time. A socket that another program has bound but
    /// not yet put into the listening state is treated as abandoned.
    public var replacesStaleFile = false
    /// The time to wait before trying again when the system lacks resources for a connection; the default is 100
    /// milliseconds.
    public var retryInterval: Duration = .milliseconds(100)
    /// The mode of the file of a Unix address, such as 0o660; defaults to `nil`, which means 0o777 without the bits in
    /// the process's `umask`.
    ///
    /// The file never has more permissions than these, not even before the socket starts listening.
    public var fileMode: UInt16?
    /// The system's socket options, set in this order before the socket is bound; defaults to none.
    ///
    /// Unless these options override it, `SO_REUSEADDR` is set, so that a port can be bound while the system still
    /// remembers old connections of it. IPv6 sockets also have `IPV6_V6ONLY` set, so that other sockets can use the
    /// port with IPv4.
    public var socketOptions: [SocketOption] = []
    /// The maximum number of open accepted connections; defaults to `nil`, which sets no limit.
    ///
    /// At the limit, the socket stops accepting, and new connections wait in the system until a connection is closed.
    public var maximumConnectionCount: Int?
    /// The time after which an accepted connection is closed with ``SocketError/deadlinePassed(after:address:)`` unless
    /// ``Socket/setDeadline(after:)`` was called in the meantime; defaults to `nil`, which sets no deadline.
    ///
    /// A peer that sends its request one byte at a time never reaches ``Socket/Options/idleTimeout``, but it does
    /// reach this deadline.
    public var requestDeadline: Duration?
    /// The configuration of accepted sockets; defaults to the default options.
    ///
    /// A connection whose system options cannot be set is accepted and then closed with ``SocketError/option(_:_:)``.
    public var accepted = Socket.Options()

    /// Creates the default options.
    public init() {}
  }

  /// The options that the socket was created with.
  public let options: Options
  /// The address at which the socket listens, with the port that the system has chosen.
  public let address: SocketAddress

  // Guarded by the lock.

  var body: Body?
  var acceptor = TaskWait<Socket?>()
  /// The error that closed the socket, for tasks that use it afterwards; nil if it was invalidated.
  var endError: SocketError?
  var isPaused = false
  /// The number of accepted connections that have not ended.
  var connectionCount = 0
  /// The places of open connections, keyed by descriptor.
  var openPlaces: [Int32: ObjectIdentifier] = [:]
  /// Records whether a drain has ended the input of the connections.
  let inputEnd = ConnectionPlace.InputEnd()
  /// The tasks that are waiting for the last connection to end.
  var drains: [CheckedContinuation<Void, Never>] = []

  struct Body {
    let handler: Handler

    /// Does not use `map`, which would wrap the closure in a thunk that hides the user's function.
    init?(_ handler: Handler?) {
      guard let handler else { return nil }
      self.handler = handler
    }
  }

  /// The maximum number of connections that are accepted before the loop serves other items.
  static let batch = 16

  /// Starts listening.
  ///
  /// For a Unix path, this creates a file, which is removed when the socket is closed if ``Options/removesFile`` is
  /// true.
  ///
  /// - Parameters:
  ///   - address: The address to listen at; port zero lets the system choose a port.
  ///   - options: The configuration of the socket.
  ///   - handler: Called once the socket is in a loop. It is released when the socket is invalidated.
  /// - Throws: ``SocketError/system(_:address:)`` with the error of `socket`, `setsockopt`, `bind` (`EADDRINUSE`,
  ///   `EACCES`, `EADDRNOTAVAIL`), `listen` or `getsockname`; with ``Options/fileMode`` also of `fchmod` and `chmod`;
  ///   with ``Options/replacesStaleFile`` also of `open` for the directory, `flock` and `unlink`.
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
    body = Body(handler)
    super.init(descriptor, options.removesFile ? made : nil)
  }

  /// Creates a socket from a descriptor that is already listening.
  init(
    listening descriptor: OwnedDescriptor, at address: SocketAddress, file: SocketFile?, options: Options,
    handler: Handler?
  ) {
    self.address = address
    self.options = options
    body = Body(handler)
    super.init(descriptor, file)
  }

  // MARK: - Overrides of the base class

  override var interest: RunLoop.DescriptorSource.Events? { accepts ? .readable : nil }

  override var handlerCode: UInt64 { body.map { ClosureCode.first(of: $0) } ?? 0 }

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
  /// The closure that is called with the socket's events.
  ///
  /// While it is `nil`, connections are accepted only for a waiting task. Can be used from any thread.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set {
      lock.releasing {
        let old = body
        if descriptor != nil { body = Body(newValue) }
        updateInterest()
        return old
      }
    }
  }

  /// Stops accepting connections.
  ///
  /// New connections wait in the system. Can be called from any thread. Calling it again has no effect.
  public func pauseAccepting() {
    lock.ifOwned {
      isPaused = true
      updateInterest()
    }
  }

  /// Resumes accepting connections, even if the retry interval after ``Event/exhausted(_:)`` has not passed yet.
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
  /// Binds the socket, starts listening, and records the file that binding created.
  fileprivate func begin(
    at address: SocketAddress, _ options: ListeningSocket.Options, _ file: inout SocketFile?
  ) throws(SystemError) {
    try bind(address, fileMode: options.fileMode, &file)
    try listen(options.backlog)
  }

  /// Binds the socket and records the file that this creates, which never has more permissions than `fileMode`.
  func bind(_ address: SocketAddress, fileMode: UInt16?, _ file: inout SocketFile?) throws(SystemError) {
    let mode = address.pathBytes == nil ? nil : fileMode
    if let mode { _ = try SystemCall.descriptorMode.make { fchmod(number, mode_t(mode)) < 0 ? -errno : 0 } }
    try bind(address)
    file = SocketFile(address)
    // Restores the permissions that the process's `umask` has removed.
    if let mode { try file?.setMode(mode) }
  }

  func prepareToListen(_ family: SocketAddress.Family) throws(SystemError) {
    guard family != .unix else { return }
    _ = try SystemCall.socketOption.make { crl_socket_reuse_address(number, 1) }
    if family == .ipv6 { try setIPv6Only() }
  }
}
