// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC
import RunLoopSockets

final class Connection: @unchecked Sendable {
  // Sendable: the variables are used only on the loop's thread; the timers have a lock.

  let number: Int
  let options: HTTPTestServer.Options
  var requestCount = 0
  private(set) var isOver = false
  /// Whether the connection ends with the current response.
  var isRetiring = false
  // HTTP/1: the rest of the input, the current request, and whether its response has begun.
  var reader: RequestReader
  var current: HTTPTestServer.Request?
  var hasBegun = false
  var isServing = false

  /// The first bytes, until the protocol is known; nil from then on.
  private var first: [UInt8]? = []
  private(set) var session: HTTP2Session?
  private var idleTimer: Timer?
  let socket: Socket
  private let loop: RunLoop
  private weak var core: ServerCore?
  /// The timers of delayed responses; nil once the connection has ended.
  private let timers = Shared<[ObjectIdentifier: Timer]?>([:])

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  init(_ socket: Socket, number: Int, of core: ServerCore) {
    (self.socket, self.number, self.core, self.loop, self.options) = (socket, number, core, core.loop, core.options)
    reader = RequestReader(bodyLimit: core.options.maximumBodySize)
  }

  /// Runs a closure on the loop's thread, synchronously if that is the current thread.
  func perform(_ work: @escaping @Sendable (Connection) -> Void) {
    if RunLoop.currentIfMade === loop { work(self) } else { loop.perform { work(self) } }
  }

  /// Runs a closure after a delay by the loop's clock, unless the connection has ended by then.
  @discardableResult
  func after(_ delay: Duration, _ work: @escaping @Sendable (Connection) -> Void) -> Timer? {
    guard delay > .zero else {
      work(self)
      return nil
    }
    let timer = loop.schedule(in: delay) { [weak self] timer in
      guard let self else { return }
      timers.withLock { _ = $0?.removeValue(forKey: ObjectIdentifier(timer)) }
      if !isOver { work(self) }
    }
    let isKept = timers.withLock { timers in
      timers?[ObjectIdentifier(timer)] = timer
      return timers != nil
    }
    if !isKept { timer.invalidate() }
    return timer
  }

  func take(_ event: Socket.Event) {
    switch event {
    case .received(let bytes): if !isOver { receive(bytes.withUnsafeBytes { Array($0) }) }
    case .ended:
      // The client has closed its end, and may still be reading; the server does not wait to find out.
      isOver = true
      socket.shutDown(.write)
    case .closed: abandon()
    case .connected, .readable, .writable: break
    }
  }

  private func receive(_ bytes: [UInt8]) {
    if let session { return session.receive(bytes) }
    guard var all = first else {
      reader.append(bytes)
      return serve()
    }
    all += bytes
    guard options.http2, all.starts(with: Self.preface.prefix(all.count)) else {
      first = nil
      reader.append(all)
      return serve()
    }
    first = all
    guard all.count >= Self.preface.count else { return }
    first = nil
    guard let session = HTTP2Session(self) else { return close() }
    self.session = session
    session.receive(all)
  }

  func deliver(_ request: HTTPTestServer.Request) {
    stopWaiting()
    guard let core else { return }
    core.state.withLock { $0.requests.append(request) }
    if let response = core.handler(request) { respond(response, to: request) }
  }

  func respond(_ response: HTTPTestServer.Response, to request: HTTPTestServer.Request) {
    guard !isOver else { return }
    if let session { session.respond(response, to: request) } else { respondPlainly(response, to: request) }
  }

  func write(_ bytes: some Collection<UInt8>) { _ = try? socket.write(Array(bytes)) }

  func send(_ bytes: [UInt8], for request: HTTPTestServer.Request) {
    write(bytes)
    if session == nil, current?.number == request.number { finish() }
  }
}

// MARK: - Ends
extension Connection {
  /// Starts the idle timer, unless it is running.
  func awaitRequest() {
    guard let time = options.idleTimeout, idleTimer == nil else { return }
    idleTimer = after(time) { $0.endIdle() }
  }

  func stopWaiting() {
    guard let timer = idleTimer else { return }
    idleTimer = nil
    timer.invalidate()
    timers.withLock { _ = $0?.removeValue(forKey: ObjectIdentifier(timer)) }
  }

  private func endIdle() {
    if let session { return session.goAway() }
    if let response = options.idleResponse { write(plainHead(response, isLast: true) + response.body) }
    close()
  }

  /// Ends the connection after the responses to its requests.
  func retire() {
    guard !isOver, !isRetiring else { return }
    isRetiring = true
    if let session { return session.goAway() }
    // A connection without a request so far is not idle yet.
    if requestCount > 0, current == nil, reader.isEmpty { close() }
  }

  func end(_ ending: HTTPTestServer.Response.Ending, _ request: HTTPTestServer.Request) {
    guard !isOver else { return }
    switch ending {
    case .keep: break
    case .close: close()
    case .halfClose: halfClose()
    case .reset: reset()
    case .goAway: if let session { session.goAway() } else { close() }
    case .reject: if let session { session.reject(request) } else { close() }
    }
  }

  /// Closes the connection after the queued bytes have been sent.
  func close() {
    isOver = true
    // With TLS, more may be queued than the socket reports. If an HTTP/2 client has sent more in the meantime, the
    // kernel would send a reset that overtakes the response.
    if options.tls == nil, session == nil, socket.queuedByteCount == 0 { abandon() } else { socket.shutDown(.write) }
  }

  func halfClose() {
    isOver = true
    socket.shutDown(.write)
  }

  func reset() {
    // Connecting to an AF_UNSPEC address makes TCP reset the connection at once, without a TLS close_notify.
    socket.withDescriptor { descriptor in
      var none = sockaddr()
      none.sa_family = sa_family_t(AF_UNSPEC)
      _ = connect(descriptor, &none, socklen_t(MemoryLayout<sockaddr>.size))
    }
    abandon()
  }

  /// Closes the connection immediately; can be called from any thread.
  func abandon() {
    let left = timers.withLock { timers in
      defer { timers = nil }
      return timers.map { Array($0.values) } ?? []
    }
    for timer in left { timer.invalidate() }
    socket.invalidate()
    core?.remove(self)
  }
}
