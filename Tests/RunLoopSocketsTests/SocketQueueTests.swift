// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Connecting to a listener whose queue is full", .timeLimit(.minutes(20)))
struct SocketQueueTests {
  /// Creates a listening socket whose queue is full, and returns it with the sockets that fill it.
  private func fullListener() throws -> (ListeningSocket, [Socket]) {
    var options = ListeningSocket.Options()
    options.backlog = 0
    let listener = try ListeningSocket(at: SocketAddress(path: socketPath()), options: options)
    // The kernel queues one more connection than requested.
    let first = try Socket(connectingTo: listener.address)
    return (listener, [first])
  }

  @Test("a socket connects when the listener's queue has room again")
  func fullQueue() {
    let log = onVirtualTime { time, loop in
      let (log, accepted) = (Log(), Notes<Socket>())
      do {
        let (listener, waiting) = try fullListener()
        listener.handler = { _, event in
          guard case .accepted(let socket) = event else { return }
          log.write("accepted at \(time.milliseconds)")
          accepted.add(socket)
        }
        let socket = try loop.connect(listener.address) { _, event in log.write(event.word) }
        log.write("\(socket.isConnected)")
        time.at(.milliseconds(35)) {
          do { try loop.add(listener, forMode: .default) } catch { log.write("\(error)") }
        }
        _ = loop.run(mode: .default, for: .milliseconds(100))
        log.write("\(socket.isConnected)")
        listener.invalidate()
        for socket in accepted.all { socket.invalidate() }
        withExtendedLifetime(waiting) {}
      } catch { log.write("\(error)") }
      return log.text
    }
    #expect(log == "false accepted at 35 accepted at 40 connected true")
  }

  @Test("a socket waits for room no longer than its connect timeout, nor after the listener has closed")
  func fullForLong() {
    let full = Box<SocketAddress?>(nil)
    let log = onVirtualSocketLoop { loop, log in
      let (listener, waiting) = try fullListener()
      full.value = listener.address
      var options = Socket.Options()
      options.connectTimeout = .milliseconds(50)
      try loop.connect(listener.address, options: options) { _, event in log.write(event.word) }
      log.write("\(loop.run(mode: .default, for: .unlimited))")
      try loop.connect(listener.address) { _, event in log.write(event.word) }
      listener.invalidate()
      log.write("\(loop.run(mode: .default, for: .unlimited))")
      withExtendedLifetime(waiting) {}
    }
    let late = SocketError.timedOut(after: .milliseconds(50), address: full.value)
    #expect(log == "closed(\(late)) finished closed(connect:\(ENOENT)) finished")
  }
}
