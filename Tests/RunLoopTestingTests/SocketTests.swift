// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopTesting
import Testing

@Suite("Sockets on virtual time")
struct SocketTests {
  @Test("ready sockets are served before the time moves")
  func ready() throws {
    try VirtualTime.onThisThread { time in
      var ends: [Int32] = [-1, -1]
      try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
      let echo = try Socket(takingOver: ends[0]) { socket, event in
        if case .received(let bytes) = event { _ = try? socket.write(bytes) }
      }
      let client = try Socket(takingOver: ends[1]) { _, event in
        guard case .received(let bytes) = event else { return }
        time.log.write(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
      }
      for socket in [echo, client] { try RunLoop.current.add(socket, forMode: .default) }
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.log.write("tick") }
      RunLoop.current.schedule(in: .milliseconds(500)) { _ in _ = try? client.write(Array("later".utf8)) }
      _ = try client.write(Array("now".utf8))
      try time.advance(by: .seconds(2))
      #expect(time.log.count(of: "now") == 1 && time.log.count(of: "later") == 1)
      let order = time.log.timedCallOuts.split(separator: " ").filter { !$0.hasPrefix("S1") && !$0.hasPrefix("T@") }
      #expect(order.joined(separator: " ") == "now@0 later@500 tick@1000")
      for socket in [echo, client] { socket.invalidate() }
    }
  }
}
