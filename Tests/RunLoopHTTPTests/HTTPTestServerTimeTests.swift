// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopHTTPTesting
import RunLoopSockets
import RunLoopTesting
import TestSupport
import Testing

/// The test server on virtual time.
@Suite struct HTTPTestServerTimeTests {
  typealias Response = HTTPTestServer.Response

  /// Sends a request on the test's own loop; returns what has arrived after some times, with the seconds.
  private func received(
    after seconds: [Int], from options: HTTPTestServer.Options = .init(), _ response: Response,
    to request: String = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  ) throws -> [String] {
    try VirtualTime.onThisThread { time in
      let server = try HTTPTestServer(on: .current, options: options) { _ in response }
      let arrived = Box("")
      let client = try Socket(connectingTo: server.address) { _, event in
        let now = time.elapsed.components.seconds
        switch event {
        case .received(let bytes):
          let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
          arrived.update { $0 += "\(now):\(text.replacing("\r\n", with: "/")) " }
        case .ended: arrived.update { $0 += "\(now):end " }
        default: break
        }
      }
      try RunLoop.current.add(client, forMode: .default)
      try client.write(request)
      var found: [String] = []
      for seconds in seconds {
        try time.advance(by: .seconds(seconds))
        found.append(arrived.value)
        arrived.value = ""
      }
      client.invalidate()
      server.stop()
      return found
    }
  }

  @Test("a delayed response is delayed by the loop's time")
  func delay() throws {
    let found = try received(after: [29, 1], Response(status: 204, delay: .seconds(30)))
    #expect(found == ["", "30:HTTP/1.1 204 OK// "])
  }

  @Test("a slow body arrives a byte at a time")
  func slow() throws {
    var response = Response("abc", ending: .close)
    response.interval = .seconds(10)
    let found = try received(after: [15, 20], response)
    #expect(found == ["0:HTTP/1.1 200 OK/Content-Length: 3// 10:a ", "20:b 30:c 30:end "])
  }

  @Test("an idle connection receives a 408 response and ends")
  func idle() throws {
    var options = HTTPTestServer.Options()
    options.idleTimeout = .seconds(5)
    options.idleResponse = Response(status: 408)
    let found = try received(after: [4, 60], from: options, Response(status: 204))
    #expect(
      found == [
        "0:HTTP/1.1 204 OK// ", "5:HTTP/1.1 408 Error/Content-Length: 0/Connection: close// 5:end ",
      ])
  }

  @Test("an idle HTTP/2 connection receives GOAWAY")
  func idleHTTP2() throws {
    var options = HTTPTestServer.Options()
    options.http2 = true
    options.idleTimeout = .seconds(5)
    // The preface, and an empty SETTINGS frame.
    let opening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0"
    let found = try received(after: [4, 60], from: options, Response(), to: opening)
    #expect(found[0].hasPrefix("0:") && !found[0].contains("end"))
    #expect(found[1].hasPrefix("5:") && found[1].hasSuffix("5:end "))
  }

  @Test("a silent server never sends anything, however long the client waits")
  func silence() throws {
    #expect(try received(after: [3600], Response(part: .nothing)) == [""])
  }
}
