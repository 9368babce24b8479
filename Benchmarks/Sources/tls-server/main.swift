// SPDX-License-Identifier: Apache-2.0

// The echo server of M4 on our sockets:
//
//     tls-server CERTIFICATE KEY
//
// It prints its port, and exits at the end of its standard input.

import Glibc
import RunLoopCore
import RunLoopSockets

nonisolated private func echo(_ socket: Socket, _ event: Socket.Event) {
  switch event {
  case .received(let bytes): if (try? socket.write(bytes)) != true { fatalError("an answer did not fit") }
  case .ended: socket.shutDown(.write)
  case .connected, .readable, .writable, .closed: break
  }
}

/// Runs the server on another thread, as the main loop serves the main dispatch queue too.
nonisolated private func serve(_ certificate: String, _ key: String) throws {
  let identity = TLSIdentity(certificateFile: certificate, keyFile: key)
  let loop = RunLoop.current
  let context = try TLSContext(TLSServerConfiguration(identity: identity))
  let listener = try ListeningSocket(at: .loopback(port: 0), tls: context) { _, event in
    guard case .accepted(let socket) = event else { return }
    socket.handler = echo
    do { try RunLoop.current.add(socket, forMode: .default) } catch { fatalError("\(error)") }
  }
  try loop.add(listener, forMode: .default)
  print(listener.address.port ?? 0)
  fflush(nil)
  loop.runUntilStopped()
}

/// Starts the thread from a function, because a closure here would be isolated to the main actor.
nonisolated private func startThread() {
  var thread = pthread_t()
  pthread_create(
    &thread, nil,
    { _ in
      do { try serve(CommandLine.arguments[1], CommandLine.arguments[2]) } catch { fatalError("\(error)") }
      return nil
    }, nil)
}

guard CommandLine.arguments.count == 3 else { fatalError("usage: tls-server CERTIFICATE KEY") }
startThread()
var byte: UInt8 = 0
while read(0, &byte, 1) > 0 {}
