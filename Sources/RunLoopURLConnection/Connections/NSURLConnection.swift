// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking
public import RunLoopCore
import RunLoopHTTP

/// A request whose delegate is called on a run loop, as on Apple platforms.
///
/// When it is started on the current loop, it adds two version 0 sources in the default mode, one for the delegate and
/// one for cookies, which all connections share. The sockets are version 1 sources in the loop of one additional
/// thread, `HTTP.Loader`. Data that arrives while the loop runs in another mode, or does not run, is queued; once half
/// a mebibyte is queued, nothing more is received.
///
/// It ends exactly once, with `connectionDidFinishLoading(_:)` or `connection(_:didFailWithError:)`. After
/// ``cancel()``, the delegate is not called anymore. From its start to its end, the connection retains itself and its
/// delegate. If the threads of all loops it is scheduled on have ended, the delegate is called on the loader's thread.
///
/// It supports `http` and `https` URLs, with the cookies of `HTTPCookieStorage.shared` and the proxies that
/// environment variables specify. There is no cache. The corresponding Foundation class is `NSURLConnection`, which is
/// not available in Foundation on Linux.
open class NSURLConnection: NSObject, @unchecked Sendable {
  // Sendable: the mutable state is guarded by the locks of the relay and the connection.

  /// The client of all connections, whose loader thread is started by the first one.
  static let client: HTTP.Client = {
    var configuration = HTTP.Configuration()
    configuration.proxy = .environment
    return HTTP.Client(configuration)
  }()

  /// The request before any redirects.
  public let originalRequest: URLRequest
  let relay: ConnectionRelay
  let connection: HTTP.Connection

  /// Creates a connection and starts it.
  ///
  /// Returns nil if the request has no URL.
  public convenience init?(request: URLRequest, delegate: (any NSURLConnectionDelegate)?) {
    self.init(request: request, delegate: delegate, startImmediately: true)
  }

  /// Creates a connection.
  ///
  /// Returns nil if the request has no URL.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - delegate: The delegate, which is retained until the end.
  ///   - startImmediately: Whether to start the connection, on the current thread's loop in the default mode.
  public convenience init?(
    request: URLRequest, delegate: (any NSURLConnectionDelegate)?, startImmediately: Bool
  ) {
    self.init(request, delegate) { _ in }
    if startImmediately { start() }
  }

  /// Creates a connection with a modified client configuration.
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

  /// The current request, after redirects.
  open var currentRequest: URLRequest { relay.currentRequest }

  /// Starts the connection.
  ///
  /// If it has not been scheduled and has no queue, it is scheduled on the current thread's loop in the default mode.
  /// Calling it again has no effect. Can be called from any thread.
  open func start() {
    guard !connection.hasEnded else { return }
    relay.hold(self)
    connection.start()
  }

  /// Ends the connection without another call to the delegate.
  ///
  /// A call in progress on another thread completes. Can be called from any thread.
  open func cancel() {
    connection.cancel()
    relay.letGo()
  }

  /// Schedules the calls of the delegate on a loop in a mode, in addition to any others.
  ///
  /// A connection can be scheduled on several loops and in several modes; the one that runs first calls the delegate.
  /// Can be called from any thread, before and after the start.
  open func schedule(in loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    connection.schedule(in: loop, forMode: mode)
  }

  /// Stops calling the delegate on a loop in a mode.
  ///
  /// While the connection is not scheduled anywhere, its events are queued. Can be called from any thread.
  open func unschedule(from loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    connection.unschedule(from: loop, forMode: mode)
  }

  /// Calls the delegate on a queue, one call at a time, instead of on loops; nil restores the loops.
  ///
  /// Can be called from any thread.
  open func setDelegateQueue(_ queue: OperationQueue?) {
    guard let queue else { return connection.setExecutor(nil) }
    connection.setExecutor { body in queue.addOperation { body() } }
  }

  /// Returns whether a request can be made, which requires an `http` or `https` URL.
  open class func canHandle(_ request: URLRequest) -> Bool {
    ["http", "https"].contains(request.url?.scheme?.lowercased())
  }
}

final class ConnectionRelay: ConnectionBorder, @unchecked Sendable {
  // Sendable: the lock guards the mutable state, except `sent`, which is used only by the delegate's calls, one at a
  // time.

  private let lock = Lock()
  private var delegate: (any NSURLConnectionDelegate)?
  /// The connection that is passed to the delegate.
  private weak var connection: NSURLConnection?
  /// The connection, retained from its start to its end.
  private var held: NSURLConnection?
  /// Whether the connection has ended, possibly between the check at its start and `hold`.
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

  /// The arguments of a call to the delegate, which is about to be made.
  private var called: (NSURLConnection, any NSURLConnectionDelegate)? {
    let called = lock.withLock { () -> (NSURLConnection, any NSURLConnectionDelegate)? in
      guard let connection, let delegate else { return nil }
      return (connection, delegate)
    }
    noteCall(on: called.flatMap { Self.usersType(of: $0.1) })
    return called
  }

  /// The type of a delegate, unless it is one of the package's own types, which call the program's blocks.
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
    // After a redirect or a challenge, the count starts over.
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
