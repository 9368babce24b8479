// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A connection to a host that is being established.
///
/// It can be cancelled, and continues even if it is not retained.
public final class HostConnection: @unchecked Sendable {
  // Sendable: the weak reference is never written after initialization.

  // Weak, so that what the loop retains is released with the loop.
  private weak var connector: HostConnector?

  init(_ connector: HostConnector) { self.connector = connector }

  /// Ends all attempts and closes their sockets.
  ///
  /// The block is released and will not be called, unless the call is in progress. Can be called from any thread.
  /// Calling it again has no effect.
  public func cancel() { connector?.end() }

  /// Whether the connection was cancelled or its block was called.
  ///
  /// Can be called from any thread.
  public var isFinished: Bool { connector?.isFinished ?? true }
}

/// Connects to the addresses of a host.
///
/// The lookup, the timers and the sockets retain the connector, and the loop retains them, while the connector
/// references them weakly. The connector is therefore released with its loop.
final class HostConnector: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  typealias Answer = Result<Socket, HostConnectionError>
  typealias Body = @Sendable (Answer) -> Void

  struct Request: Sendable {
    let query: HostResolver.Query
    let options: Socket.Options
    let attemptDelay: Duration
    let timeout: Duration?
    let loop: RunLoop
    let modes: [RunLoop.Mode]

    /// The options for each socket, with a server name that defaults to the host's name.
    var socketOptions: Socket.Options {
      guard options.tls != nil, options.serverName == nil else { return options }
      var options = options
      options.serverName = query.host
      return options
    }

    /// The minimum delay between attempts; RFC 8305 recommends 250 milliseconds, and at least 10.
    static let leastDelay: Duration = .milliseconds(10)
  }

  /// The functions that create sockets and resolve hosts, which tests replace.
  struct System: Sendable {
    var resolve: @Sendable (Request, @escaping @Sendable (HostResolver.Answer) -> Void) -> HostLookup = {
      request, body in
      HostResolver.resolve(
        request.query, timeout: nil, on: request.loop, inModes: request.modes, by: .shared, body)
    }
    var connect: @Sendable (SocketAddress, Socket.Options, @escaping Socket.Handler) -> Result<Socket, SocketError> = {
      address, options, handler in
      Result { () throws(SocketError) in
        try Socket(connectingTo: address, options: options, handler: handler)
      }
    }
  }

  /// Wraps the block in a structure whose name identifies the call in a recording.
  private struct Call {
    let body: Body
  }

  private struct Weak<Value: AnyObject> {
    weak var value: Value?
  }

  private let request: Request
  private let system: System
  private let lock = Lock()

  // Guarded by the lock.

  private var body: Body?
  private var race = ConnectionRace([])
  private var lookup: HostLookup?
  private var sockets: [Int: Weak<Socket>] = [:]
  private weak var delay: Timer?
  private weak var deadline: Timer?

  private init(_ request: Request, _ system: System, _ body: @escaping Body) {
    self.request = request
    self.system = system
    self.body = body
  }

  var isFinished: Bool { lock.withLock { body == nil } }

  static func start(_ request: Request, system: System = System(), _ body: @escaping Body) -> HostConnection {
    let connector = HostConnector(request, system, body)
    if let timeout = request.timeout {
      let timer = Timer(deadline: request.loop.instant(after: timeout)) { _ in connector.timeIsOver(timeout) }
      connector.lock.withLock { connector.deadline = timer }
      for mode in request.modes { request.loop.add(timer, forMode: mode) }
    }
    let lookup = system.resolve(request) { connector.resolved($0) }
    let isOver = connector.lock.withLock {
      guard connector.body != nil else { return true }
      connector.lookup = lookup
      return false
    }
    if isOver { lookup.cancel() }
    return HostConnection(connector)
  }
}

// Called on the loop's thread.
extension HostConnector {
  private func resolved(_ answer: HostResolver.Answer) {
    switch answer {
    case .success(let addresses):
      perform(
        lock.withLock {
          lookup = nil
          race = ConnectionRace(addresses)
          return race.goOn()
        })
    case .failure(let error): finish { _ in .failure(.lookup(error)) }
    }
  }

  /// Starts attempts, and finishes if all have failed.
  private func perform(_ first: ConnectionRace.Action) {
    var action = first
    while case .begin(let index) = action {
      do throws(SocketError) {
        try begin(index)
        startDelay()
        return
      } catch {
        action = lock.withLock { race.failed(index, error) }
      }
    }
    guard action == .fail else { return }
    let host = request.query.host
    finish { .failure(.failed(host: host, attempts: $0)) }
  }

  private func begin(_ index: Int) throws(SocketError) {
    let address = lock.withLock { race.attempts[index].address }
    let made = system.connect(address, request.socketOptions) { [self] socket, event in
      switch event {
      case .connected: won(socket, index)
      case .closed(let error):
        perform(lock.withLock { race.failed(index, error ?? .invalid) })
      case .received, .readable, .writable, .ended: break
      }
    }
    let socket = try made.get()
    do throws(RunLoopError) {
      for mode in request.modes { try request.loop.add(socket, forMode: mode) }
    } catch {
      socket.invalidate()
      throw .loop(error)
    }
    let isOver = lock.withLock {
      sockets[index] = Weak(value: socket)
      return body == nil
    }
    // The connection was cancelled in the meantime.
    if isOver { socket.invalidate() }
  }

  private func startDelay() {
    guard lock.withLock({ race.hasMore }) else { return stop(takeDelay()) }
    let deadline = request.loop.instant(after: max(Request.leastDelay, request.attemptDelay))
    let timer = Timer(deadline: deadline) { [self] _ in perform(lock.withLock { race.goOn() }) }
    let before = takeDelay()
    lock.withLock { delay = timer }
    stop(before)
    for mode in request.modes { request.loop.add(timer, forMode: mode) }
    if isFinished { timer.invalidate() }
  }

  private func takeDelay() -> Timer? {
    lock.withLock {
      defer { delay = nil }
      return delay
    }
  }

  private func stop(_ timer: Timer?) { timer?.invalidate() }

  private func won(_ socket: Socket, _ index: Int) {
    // Keep the winner from being invalidated with the other sockets.
    lock.withLock { sockets[index] = nil }
    socket.handler = nil
    for mode in request.modes { request.loop.remove(socket, forMode: mode) }
    if !finish({ _ in .success(socket) }) { socket.invalidate() }
  }

  private func timeIsOver(_ timeout: Duration) {
    let host = request.query.host
    finish { .failure(.timedOut(host: host, after: timeout, attempts: $0)) }
  }
}

// Can be called from any thread, except for `finish`.
extension HostConnector {
  /// Finishes and calls the block with the outcome, on the loop's thread, or returns false if the connection was
  /// already finished.
  @discardableResult
  private func finish(_ answer: ([HostConnectionError.Attempt]) -> Answer) -> Bool {
    let attempts = lock.withLock { race.attempts }
    guard let body = end() else { return false }
    noteCall(of: Call(body: body))
    body(answer(attempts))
    return true
  }

  /// Closes the connecting sockets, and returns the block, or `nil` if the connection was already finished.
  @discardableResult
  func end() -> Body? {
    lock.lock()
    let remains = (
      body: body, lookup: lookup, sockets: sockets.values.compactMap(\.value), timers: [delay, deadline]
    )
    body = nil
    lookup = nil
    sockets = [:]
    _ = race.end()
    lock.unlock()
    remains.lookup?.cancel()
    for timer in remains.timers { timer?.invalidate() }
    for socket in remains.sockets { socket.invalidate() }
    return remains.body
  }
}
