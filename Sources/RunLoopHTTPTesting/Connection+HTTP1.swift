// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// MARK: - HTTP/1: one request and response after the other
extension Connection {
  /// Handles the requests that have arrived, until one is waiting for its response.
  func serve() {
    guard !isServing else { return }
    isServing = true
    defer { isServing = false }
    while current == nil, !isOver {
      do throws(RequestReader.Failure) {
        guard let parsed = try reader.next() else {
          if reader.takeContinue() { write("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
          return awaitRequest()
        }
        take(parsed)
      } catch {
        let response = HTTPTestServer.Response(status: error == .tooLarge ? 413 : 400)
        write(plainHead(response, isLast: true))
        // The rest of the input is read, so that the client sees the response.
        return halfClose()
      }
    }
  }

  private func take(_ parsed: RequestReader.Parsed) {
    let request = HTTPTestServer.Request(
      method: parsed.method, path: parsed.target, headers: parsed.headers, body: parsed.body, isHTTP2: false,
      connection: number, number: requestCount, isKept: parsed.isKept, stream: 0, wire: self)
    requestCount += 1
    (current, hasBegun) = (request, false)
    deliver(request)
  }

  /// Called when the response to the request has been sent.
  func finish() {
    current = nil
    serve()
  }

  func respondPlainly(_ response: HTTPTestServer.Response, to request: HTTPTestServer.Request) {
    guard current?.number == request.number, !hasBegun else { return }
    hasBegun = true
    after(response.delay) { $0.begin(response, to: request) }
  }

  private func begin(_ response: HTTPTestServer.Response, to request: HTTPTestServer.Request) {
    if response.ending == .reject || response.part == .nothing && response.ending == .goAway { return close() }
    let isLast =
      response.ending == .goAway || isRetiring || !request.isKept || requestCount == options.requestsPerConnection
    // Written in one call, so that a small response is a single segment.
    var first = response.part == .nothing ? [] : plainHead(response, isLast: isLast)
    var body = response.body.prefix(response.bodyCount(for: request.method))
    if response.pace == nil {
      first += body
      body = []
    }
    write(first)
    trickle(body, every: response.pace) { connection in
      guard response.ending == .keep || response.ending == .goAway else {
        return connection.end(response.ending, request)
      }
      guard response.part == .all || response.ending == .goAway else { return }
      if isLast || connection.isRetiring { connection.close() } else { connection.finish() }
    }
  }

  /// Sends a body, one byte per interval, and then calls a closure.
  private func trickle(
    _ bytes: ArraySlice<UInt8>, every interval: Duration?, _ end: @escaping @Sendable (Connection) -> Void
  ) {
    guard let interval, let byte = bytes.first else { return end(self) }
    after(interval) { connection in
      connection.write([byte])
      connection.trickle(bytes.dropFirst(), every: interval, end)
    }
  }

  func plainHead(_ response: HTTPTestServer.Response, isLast: Bool) -> [UInt8] {
    var lines = ["HTTP/1.1 \(response.status) \(response.status < 400 ? "OK" : "Error")"]
    lines += response.allHeaders.map { "\($0.name): \($0.value)" }
    if isLast { lines.append("Connection: close") }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }
}
