// SPDX-License-Identifier: Apache-2.0

// An echo server: one resident thread, whose loop serves every connection.
//
//     swift run --package-path Examples echo-server [--port N] [--host H] [--identity FILE]
//
// The port is 0 if it is not given, which lets the system choose; the host is 127.0.0.1. With a file in PEM that has a
// certificate and its key, the connections are secured. Started by a service manager
// with a socket that listens already, it serves that one:
//
//     systemd-socket-activate -l /tmp/echo echo-server
//
// It prints where it listens, and ends with 0 when it is interrupted or told to terminate.

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

/// What comes goes back; who does not read what comes back is not read either.
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
    // The queue is full only for who writes on after it was told to wait.
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
  // A thousand clients at a time; the others wait.
  options.maximumConnectionCount = 1000
  options.accepted.socketOptions = [.keepAlive(idle: .seconds(60), interval: .seconds(10), count: 6)]
  if let identity {
    let pair = TLSIdentity(certificateFile: identity, keyFile: identity)
    options.accepted.tls = try TLSContext(TLSServerConfiguration(identity: pair))
  }
  let listener: ListeningSocket
  if let activated = try SocketActivation.take().first {
    // The file of a Unix address is the service manager's; its connections know no TCP.
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
