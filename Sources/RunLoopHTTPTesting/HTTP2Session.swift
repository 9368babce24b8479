// SPDX-License-Identifier: Apache-2.0

import CRunLoopHTTP2
import RunLoopCore

/// The server side of an HTTP/2 connection, using libnghttp2, on the loop's thread.
final class HTTP2Session {
  private struct Stream {
    let number: Int
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var response: HTTPTestServer.Response?
    /// The response's body, the number of bytes that may be sent by now, and the number that have been sent.
    var output: [UInt8] = []
    var allowed = 0
    var sent = 0
  }

  /// The maximum number of concurrent streams, as in nginx.
  static let streamLimit: UInt32 = 128

  private unowned let connection: Connection
  private var session: OpaquePointer?
  private var streams: [Int32: Stream] = [:]
  /// The last stream to serve, once the end has been announced.
  private var lastStream = Int32.max
  /// Complete requests and a pending end of the connection, which both wait until libnghttp2 has returned.
  private var complete: [Int32] = []
  private var ending = HTTPTestServer.Response.Ending.keep
  private var isInLibrary = false

  /// Returns nil if there is no memory.
  init?(_ connection: Connection) {
    self.connection = connection
    var calls = Self.calls
    session = crh_make(&calls, Unmanaged.passUnretained(self).toOpaque(), Self.streamLimit)
    guard session != nil else { return nil }
  }

  deinit { if let session { crh_free(session) } }

  func receive(_ bytes: [UInt8]) {
    isInLibrary = true
    let result = crh_receive(session, bytes, bytes.count)
    isInLibrary = false
    // Before any bytes that a handler sends unchanged.
    flush()
    let arrived = complete
    complete = []
    for stream in arrived { if let request = request(stream) { connection.deliver(request) } }
    if result < 0, !connection.isOver { connection.close() }
  }

  /// Sends pending frames, and ends the connection if that is due.
  private func flush() {
    guard !isInLibrary, !connection.isOver else { return }
    isInLibrary = true
    var (bytes, count): (UnsafePointer<UInt8>?, Int) = (nil, 0)
    repeat {
      count = crh_send(session, &bytes)
      if count > 0 { connection.write(UnsafeBufferPointer(start: bytes, count: count)) }
    } while count > 0
    isInLibrary = false
    switch ending {
    case .close: connection.close()
    case .halfClose: connection.halfClose()
    case .reset: connection.reset()
    case .keep, .goAway, .reject: if count < 0 || crh_is_over(session) != 0 { connection.close() }
    }
  }

  /// Schedules the end of the connection, after libnghttp2's last bytes, unless another end is already scheduled.
  private func note(_ ending: HTTPTestServer.Response.Ending) { if self.ending == .keep { self.ending = ending } }

  private func request(_ stream: Int32) -> HTTPTestServer.Request? {
    guard let state = streams[stream] else { return nil }
    var (method, path, host) = ("", "", String?.none)
    var headers: [(name: String, value: String)] = []
    for header in state.headers {
      switch header.name {
      case ":method": method = header.value
      case ":path": path = header.value
      case ":authority": host = header.value
      default: if !header.name.hasPrefix(":") { headers.append(header) }
      }
    }
    if let host, !headers.contains(where: { $0.name == "host" }) { headers.insert(("host", host), at: 0) }
    return HTTPTestServer.Request(
      method: method, path: path, headers: headers, body: state.body, isHTTP2: true, connection: connection.number,
      number: state.number, isKept: true, stream: stream, wire: connection)
  }
}

// MARK: - Responses and ends
extension HTTP2Session {
  func respond(_ response: HTTPTestServer.Response, to request: HTTPTestServer.Request) {
    guard streams[request.stream]?.response == nil else { return }
    streams[request.stream]?.response = response
    connection.after(response.delay) { $0.session?.begin(response, to: request) }
  }

  func begin(_ response: HTTPTestServer.Response, to request: HTTPTestServer.Request) {
    guard streams[request.stream] != nil else { return }
    switch (response.part, response.ending) {
    case (_, .reject): return reject(request)
    case (.nothing, .goAway):
      lastStream = max(0, request.stream - 2)
      crh_go_away(session, lastStream)
    case (.nothing, _): note(response.ending)
    default: send(response, to: request)
    }
    flush()
  }

  private func send(_ response: HTTPTestServer.Response, to request: HTTPTestServer.Request) {
    let stream = request.stream
    let output = Array(response.body.prefix(response.bodyCount(for: request.method)))
    streams[stream]?.output = output
    streams[stream]?.allowed = response.pace == nil ? output.count : 0
    let hasBody = response.part != .all || !output.isEmpty
    var (text, lengths): ([UInt8], [Int]) = ([], [])
    for header in [(":status", "\(response.status)")] + response.allHeaders {
      let name = header.0.lowercased()
      // These headers exist only in HTTP/1.
      guard !["connection", "keep-alive", "transfer-encoding"].contains(name) else { continue }
      text += Array(name.utf8) + Array(header.1.utf8)
      lengths += [name.utf8.count, header.1.utf8.count]
    }
    crh_respond(session, stream, text, lengths, lengths.count / 2, hasBody ? 1 : 0)
    if response.ending == .goAway { crh_go_away(session, -1) }
    if !hasBody { note(response.ending) }
    if let interval = response.pace, !output.isEmpty { trickle(stream, every: interval) }
  }

  /// Allows one more byte of a body to be sent after each interval.
  private func trickle(_ stream: Int32, every interval: Duration) {
    connection.after(interval) { $0.session?.resume(stream, every: interval) }
  }

  func resume(_ stream: Int32, every interval: Duration) {
    guard var state = streams[stream] else { return }
    state.allowed += 1
    streams[stream] = state
    crh_resume(session, stream)
    flush()
    if state.allowed < state.output.count { trickle(stream, every: interval) }
  }

  func reject(_ request: HTTPTestServer.Request) {
    crh_reject(session, request.stream)
    flush()
  }

  func goAway() {
    crh_go_away(session, -1)
    flush()
  }
}

// MARK: - Callbacks for libnghttp2
extension HTTP2Session {
  private static func session(_ owner: UnsafeMutableRawPointer?) -> HTTP2Session {
    guard let owner else { preconditionFailure("a call without its owner") }
    return Unmanaged<HTTP2Session>.fromOpaque(owner).takeUnretainedValue()
  }

  private static let calls = crh_calls(
    begin: { owner, stream in session(owner).begin(stream) },
    header: { owner, stream, name, nameCount, value, count in
      let name = String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self)
      let value = String(decoding: UnsafeBufferPointer(start: value, count: count), as: UTF8.self)
      session(owner).streams[stream]?.headers.append((name, value))
    },
    data: { owner, stream, bytes, count in session(owner).take(UnsafeBufferPointer(start: bytes, count: count), stream)
    },
    complete: { owner, stream in session(owner).complete.append(stream) },
    close: { owner, stream in session(owner).close(stream) },
    body: { owner, stream, bytes, room, isEnd in session(owner).fill(bytes, room, stream, isEnd) })

  private func begin(_ stream: Int32) {
    // Trailers belong to the same request.
    guard stream <= lastStream, streams[stream] == nil else { return }
    connection.stopWaiting()
    streams[stream] = Stream(number: connection.requestCount)
    connection.requestCount += 1
    guard connection.requestCount == connection.options.requestsPerConnection else { return }
    lastStream = stream
    crh_go_away(session, stream)
  }

  private func take(_ bytes: UnsafeBufferPointer<UInt8>, _ stream: Int32) {
    guard let count = streams[stream]?.body.count else { return }
    guard count + bytes.count <= connection.options.maximumBodySize else { return note(.close) }
    streams[stream]?.body += bytes
  }

  private func close(_ stream: Int32) {
    streams[stream] = nil
    if streams.isEmpty { connection.awaitRequest() }
  }

  /// Copies the available part of a response's body.
  private func fill(
    _ bytes: UnsafeMutablePointer<UInt8>?, _ room: Int, _ stream: Int32, _ isEnd: UnsafeMutablePointer<Int32>?
  ) -> Int {
    guard let state = streams[stream], let response = state.response else { return 0 }
    let count = min(room, state.allowed - state.sent)
    state.output[state.sent..<state.sent + count].withUnsafeBufferPointer { source in
      guard let start = source.baseAddress else { return }
      bytes?.update(from: start, count: count)
    }
    streams[stream]?.sent += count
    if state.sent + count == state.output.count {
      if response.part == .all { isEnd?.pointee = 1 }
      note(response.ending)
    }
    return count
  }
}
