// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC
import RunLoopSockets

/// A connection of a server's, of either protocol, and its ends.
final class Connection: @unchecked Sendable {
  // Sendable: the variables belong to the loop's thread; the timers have a lock.

  let number: Int
  let options: HTTPTestServer.Options
  /// How many requests have begun.
  var requestCount = 0
  /// Whether nothing that is received counts any more.
  private(set) var isOver = false
  /// Whether the connection ends with the response that is being made.
  var isRetiring = false
  // HTTP/1: the rest of the input, the request that is being answered, and whether its response has begun.
  var reader: RequestReader
  var current: HTTPTestServer.Request?
  var hasBegun = false
  var isServing = false

  /// The first bytes, until it is known of which protocol they are; nil then.
  private var first: [UInt8]? = []
  private(set) var session: HTTP2Session?
  private var idleTimer: Timer?
  let socket: Socket
  private let loop: RunLoop
  private weak var core: ServerCore?
  /// Those of delayed responses; none are added when the connection has ended.
  private let timers = Shared<[ObjectIdentifier: Timer]?>([:])

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  init(_ socket: Socket, number: Int, of core: ServerCore) {
    (self.socket, self.number, self.core, self.loop, self.options) = (socket, number, core, core.loop, core.options)
    reader = RequestReader(bodyLimit: core.options.maximumBodySize)
  }

  /// Does something on the loop's thread: at once if this is it.
  func perform(_ work: @escaping @Sendable (Connection) -> Void) {
    if RunLoop.currentIfMade === loop { work(self) } else { loop.perform { work(self) } }
  }

  /// Does something after a time by the loop's clock, unless the connection has ended by then.
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
      // The client has gone: it is not waited for whether it still reads.
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

  /// Has the server respond to a request.
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

  /// Sends bytes as they are.
  func send(_ bytes: [UInt8], for request: HTTPTestServer.Request) {
    write(bytes)
    if session == nil, current?.number == request.number { finish() }
  }
}

// Ends.
extension Connection {
  /// Begins to count the time without a request, unless it is counted already.
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

  /// Ends the connection when its requests are answered.
  func retire() {
    guard !isOver, !isRetiring else { return }
    isRetiring = true
    if let session { return session.goAway() }
    // One that has had no request yet is not a kept one.
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

  /// Closes the connection, when what is queued has been sent.
  func close() {
    isOver = true
    // With TLS more may wait than the socket counts, and to what a client of HTTP/2 has still sent, the system would
    // respond with a reset that overtakes the response.
    if options.tls == nil, session == nil, socket.queuedByteCount == 0 { abandon() } else { socket.shutDown(.write) }
  }

  func halfClose() {
    isOver = true
    socket.shutDown(.write)
  }

  func reset() {
    // An address of no family makes TCP reset the connection at once, without TLS's own farewell.
    socket.withDescriptor { descriptor in
      var none = sockaddr()
      none.sa_family = sa_family_t(AF_UNSPEC)
      _ = connect(descriptor, &none, socklen_t(MemoryLayout<sockaddr>.size))
    }
    abandon()
  }

  /// Closes the connection at once; can be called from any thread.
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
