// SPDX-License-Identifier: Apache-2.0

// An echo server: one resident thread, whose loop serves every connection.
//
//     swift run --package-path Examples echo-server [--port N] [--host H] [--identity FILE]
//
// The port defaults to 0, for which the system chooses one, and the host to 127.0.0.1. With a PEM file that contains
// a certificate and its key, the connections use TLS. If a service manager starts the program with a listening
// socket, it serves that one:
//
//     systemd-socket-activate -l /tmp/echo echo-server
//
// It prints its address, and exits with 0 on SIGINT or SIGTERM.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads

let usage = "usage: echo-server [--port N] [--host H] [--identity FILE]"

@Sendable func say(_ message: String, on descriptor: Int32 = STDERR_FILENO) {
  var line = message + "\n"
  line.withUTF8 { _ = write(descriptor, $0.baseAddress, $0.count) }
}

@Sendable func fail(_ message: String, status: Int32) -> Never {
  say("echo-server: \(message)")
  exit(status)
}

var port: UInt16 = 0
var host = "127.0.0.1"
var identity: String?
var arguments = CommandLine.arguments.dropFirst()
while let name = arguments.popFirst() {
  guard let value = arguments.popFirst() else { fail(usage, status: 2) }
  switch name {
  case "--port":
    guard let number = UInt16(value) else { fail("\"\(value)\" is not a port number", status: 2) }
    port = number
  case "--host": host = value
  case "--identity": identity = value
  default: fail(usage, status: 2)
  }
}

/// Echoes received bytes, and stops reading from a client that does not read its echo.
@Sendable func echo(_ connection: Socket, _ event: Socket.Event) {
  do {
    switch event {
    case .received(let bytes): if try !connection.write(bytes) { connection.pauseReading() }
    case .writable: connection.resumeReading()
    case .ended: connection.shutDown(.write)
    case .closed(let error?): say("echo-server: \(error)")
    case .connected, .readable, .closed(nil): break
    }
  } catch {
    // The queue is full only if a client writes on although it was paused.
    say("echo-server: \(error)")
    connection.invalidate()
  }
}

do {
  let address = try SocketAddress(host: host, port: port)
  let thread = try ResidentThread(name: "echo")
  let loop = thread.runLoop
  let handler: ListeningSocket.Handler = { _, event in
    switch event {
    case .accepted(let connection):
      connection.handler = echo
      do { try loop.add(connection, forMode: .default) } catch { say("echo-server: \(error)") }
    case .exhausted(let error): say("echo-server: no connection can be accepted now: \(error)")
    case .closed(let error): fail("\(error)", status: 1)
    }
  }
  var options = ListeningSocket.Options()
  // At most a thousand clients at a time; further ones wait.
  options.maximumConnectionCount = 1000
  options.accepted.socketOptions = [.keepAlive(idle: .seconds(60), interval: .seconds(10), count: 6)]
  if let identity {
    let pair = TLSIdentity(certificateFile: identity, keyFile: identity)
    options.accepted.tls = try TLSContext(TLSServerConfiguration(identity: pair))
  }
  let listener: ListeningSocket
  if let activated = try SocketActivation.take().first {
    // The service manager owns the file of a Unix address, whose connections have no TCP options.
    options.removesFile = false
    options.accepted.socketOptions = []
    listener = try ListeningSocket(takingOver: activated.number, options: options, handler: handler)
  } else {
    listener = try ListeningSocket(at: address, options: options, handler: handler)
  }
  try loop.add(listener, forMode: .default)
  for signal in [SIGINT, SIGTERM] {
    try loop.add(SignalSource(signal: signal) { _, _ in thread.stop() }, forMode: .default)
  }
  say("listening on \(listener.address)", on: STDOUT_FILENO)
  try thread.join()
} catch {
  fail("\(error)", status: 1)
}
