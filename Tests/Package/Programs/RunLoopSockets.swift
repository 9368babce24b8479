// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets

/// A socket that sends bytes to an echoing peer in the same loop.
@main enum Program {
  static func main() throws {
    let loop = RunLoop.current
    let listener = try ListeningSocket(at: try SocketAddress(host: "127.0.0.1", port: 0)) { _, event in
      guard case .accepted(let connection) = event else { exit(1) }
      connection.handler = { connection, event in
        if case .received(let bytes) = event { _ = try? connection.write(bytes) }
      }
      do { try loop.add(connection, forMode: .default) } catch { exit(1) }
    }
    try loop.add(listener, forMode: .default)
    let socket = try Socket(connectingTo: listener.address) { socket, event in
      switch event {
      case .connected: _ = try? socket.write(Array("hello".utf8))
      case .received(let bytes):
        print("RunLoopSockets: \(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })")
        loop.stop()
      default: exit(1)
      }
    }
    try loop.add(socket, forMode: .default)
    exit(loop.run(mode: .default, for: .seconds(60)) == .stopped ? 0 : 1)
  }
}
