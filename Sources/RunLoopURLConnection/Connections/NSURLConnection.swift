// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking
public import RunLoopCore
import RunLoopHTTP

/// A request whose delegate is called on a run loop, as on Apple's systems.
///
/// Started on the current loop it adds two sources of version 0 there, in the default mode: one for the delegate and
/// one for cookies, which all connections share. The sockets are sources of version 1 in the loop of one further
/// thread, `HTTP.Loader`. What arrives while the loop runs in another mode, or not at all, waits; from half a mebibyte
/// on, the server does too.
///
/// It ends exactly once, with `connectionDidFinishLoading(_:)` or `connection(_:didFailWithError:)`. After ``cancel()``
/// nothing is called any more. From the start to the end it keeps itself and its delegate. If the threads of all loops
/// that it is scheduled on have ended, the loader's thread calls.
///
/// Addresses of `http` and `https` are loaded, with cookies of `HTTPCookieStorage.shared` and the proxies that the
/// environment names. There is no cache. The corresponding Foundation class is `NSURLConnection`, which is not
/// available in Foundation on Linux.
open class NSURLConnection: NSObject, @unchecked Sendable {
  // Sendable: what changes is guarded by the locks of the relay and the connection.

  /// The client of all connections: its loader's thread is started by the first.
  static let client: HTTP.Client = {
    var configuration = HTTP.Configuration()
    configuration.proxy = .environment
    return HTTP.Client(configuration)
  }()

  /// What was asked for at first.
  public let originalRequest: URLRequest
  let relay: ConnectionRelay
  let connection: HTTP.Connection

  /// Makes a connection and starts it.
  ///
  /// Returns nil if the request has no address.
  public convenience init?(request: URLRequest, delegate: (any NSURLConnectionDelegate)?) {
    self.init(request: request, delegate: delegate, startImmediately: true)
  }

  /// Makes a connection.
  ///
  /// Returns nil if the request has no address.
  ///
  /// - Parameters:
  ///   - request: What to ask for.
  ///   - delegate: Who is called. It is held until the end.
  ///   - startImmediately: Whether it is started, on the current thread's loop in the default mode.
  public convenience init?(
    request: URLRequest, delegate: (any NSURLConnectionDelegate)?, startImmediately: Bool
  ) {
    self.init(request, delegate) { _ in }
    if startImmediately { start() }
  }

  /// Makes a connection that is made in a way of its own.
  init?(
    _ request: URLRequest, _ delegate: (any NSURLConnectionDelegate)?, _ change: (inout HTTP.Configuration) -> Void
  ) {
    guard let asked = HTTP.Request(request) else { return nil }
    originalRequest = request
    relay = ConnectionRelay(request, delegate)
    connection = HTTP.Connection(Self.client, asked, delegate: relay) {
      $0.idleTimeout = request.idleTimeout
      change(&$0)
    }
    super.init()
    relay.note(self)
  }

  /// What is asked for, after redirects.
  open var currentRequest: URLRequest { relay.currentRequest }

  /// Begins.
  ///
  /// If it is not scheduled and has no queue, it is scheduled on the current thread's loop in the default mode. Calling
  /// it again has no effect. Can be called from any thread.
  open func start() {
    guard !connection.hasEnded else { return }
    relay.hold(self)
    connection.start()
  }

  /// Ends without another call to the delegate.
  ///
  /// A call that another thread is making comes to its end. Can be called from any thread.
  open func cancel() {
    connection.cancel()
    relay.letGo()
  }

  /// Calls the delegate on a loop in a mode, too.
  ///
  /// It can be scheduled on several loops and in several modes; whichever runs first calls. Can be called from any
  /// thread, before and after the start.
  open func schedule(in loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    connection.schedule(in: loop, forMode: mode)
  }

  /// Calls the delegate no more on a loop in a mode.
  ///
  /// While it is scheduled nowhere, what arrives waits. Can be called from any thread.
  open func unschedule(from loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    connection.unschedule(from: loop, forMode: mode)
  }

  /// Lets a queue call the delegate, one call at a time, instead of loops; nil: the loops again.
  ///
  /// Can be called from any thread.
  open func setDelegateQueue(_ queue: OperationQueue?) {
    guard let queue else { return connection.setExecutor(nil) }
    connection.setExecutor { body in queue.addOperation { body() } }
  }

  /// Whether a request can be made: its address is one of `http` or `https`.
  open class func canHandle(_ request: URLRequest) -> Bool {
    ["http", "https"].contains(request.url?.scheme?.lowercased())
  }
}

/// Calls the delegate of a connection.
final class ConnectionRelay: ConnectionBorder, @unchecked Sendable {
  // Sendable: the lock guards what changes, but for `sent`: the calls of the delegate use it, which are made by one
  // thread at a time.

  private let lock = Lock()
  private var delegate: (any NSURLConnectionDelegate)?
  /// Who is named in the calls.
  private weak var connection: NSURLConnection?
  /// From the start to the end.
  private var held: NSURLConnection?
  /// Whether the end was there; it may have come between the start's first look and its hold.
  private var isOver = false
  private var sent: Int64 = 0

  init(_ request: URLRequest, _ delegate: (any NSURLConnectionDelegate)?) {
    self.delegate = delegate
    super.init(request)
  }

  func note(_ connection: NSURLConnection) { lock.withLock { self.connection = connection } }
  func hold(_ connection: NSURLConnection) { lock.withLock { if !isOver { held = connection } } }

  func letGo() {
    lock.lock()
    let (connection, delegate) = (held, delegate)
    isOver = true
    held = nil
    self.delegate = nil
    lock.unlock()
    withExtendedLifetime((connection, delegate)) {}
  }

  /// Who is called, with what; he is about to be.
  private var called: (NSURLConnection, any NSURLConnectionDelegate)? {
    let called = lock.withLock { () -> (NSURLConnection, any NSURLConnectionDelegate)? in
      guard let connection, let delegate else { return nil }
      return (connection, delegate)
    }
    noteCall(on: called.flatMap { Self.usersType(of: $0.1) })
    return called
  }

  /// The type of a delegate, unless that is one of the package's own, which calls the program's blocks.
  private static func usersType(of delegate: any NSURLConnectionDelegate) -> Any.Type? {
    let type: Any.Type = Swift.type(of: delegate)
    return type == AFURLConnectionOperation.self || type == AFHTTPRequestOperation.self ? nil : type
  }

  private var calledWithData: (NSURLConnection, any NSURLConnectionDataDelegate)? {
    guard let (connection, delegate) = called, let delegate = delegate as? any NSURLConnectionDataDelegate else {
      return nil
    }
    return (connection, delegate)
  }

  override func willSend(_ next: URLRequest, after response: HTTPURLResponse) -> URLRequest? {
    guard let (connection, delegate) = calledWithData else { return next }
    return delegate.connection(connection, willSend: next, redirectResponse: response)
  }

  override func isAsked(_ challenge: URLAuthenticationChallenge) {
    guard let (connection, delegate) = called else { return super.isAsked(challenge) }
    delegate.connection(connection, willSendRequestFor: challenge)
  }

  override var usesCredentialStorage: Bool {
    called.map { $0.1.connectionShouldUseCredentialStorage($0.0) } ?? true
  }

  override func newBodyStream(for request: URLRequest) -> InputStream? {
    calledWithData.flatMap { $0.1.connection($0.0, needNewBodyStream: request) }
  }

  override func didReceive(_ response: HTTPURLResponse) {
    if let (connection, delegate) = calledWithData { delegate.connection(connection, didReceive: response) }
  }

  override func didReceive(_ data: Data) {
    if let (connection, delegate) = calledWithData { delegate.connection(connection, didReceive: data) }
  }

  override func didSend(_ count: Int64, of total: Int64?) {
    // After a redirect or a challenge it begins again.
    let added = count >= sent ? count - sent : count
    sent = count
    guard let (connection, delegate) = calledWithData else { return }
    delegate.connection(
      connection, didSendBodyData: Int(added), totalBytesWritten: Int(count),
      totalBytesExpectedToWrite: Int(total ?? -1))
  }

  override func didEnd(_ error: URLError?) {
    let called = called
    letGo()
    guard let (connection, delegate) = called else { return }
    if let error {
      delegate.connection(connection, didFailWithError: error)
    } else {
      (delegate as? any NSURLConnectionDataDelegate)?.connectionDidFinishLoading(connection)
    }
  }
}
